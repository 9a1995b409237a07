// Sends and receives packets of words.
#include "warm/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <deque>
#include <utility>

#include "base/system/memory_file.h"
#include "keeper/between/keeper_protocol.h"

namespace ddprun::agent::warm {

namespace asio = boost::asio;

namespace {

// Longer than every answer: 20 bytes for each of thousands of workers, or the names of modules.
constexpr std::size_t kMostBytes = std::size_t{1} << 18;

std::string join(const Words& words) {
    std::string text;
    for (const std::string& word : words) (text += word) += '\0';
    if (!text.empty()) text.pop_back();
    return text;
}

Words split(const std::string& text) {
    Words words;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\0', at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

}  // namespace

struct Channel::Impl : std::enable_shared_from_this<Channel::Impl> {
    struct Packet {
        std::string text;
        std::vector<UniqueFd> fds;
    };

    Impl(asio::io_context& io, UniqueFd socket, Events told)
        : stream(io, socket.release()), events(std::move(told)) {}

    void read() {
        stream.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const auto& error) {
                              if (!error && self->stream.is_open()) self->take();
                          });
    }
    // The other side cannot be told what it must know.
    void end_later() {
        asio::post(stream.get_executor(), [self = shared_from_this()] { self->end(); });
    }
    void end() {
        if (!stream.is_open()) return;
        stream.close();
        // A callback may destroy the channel, and with it the callbacks.
        if (const auto told = events.end) told();
    }
    void take();
    void flush();

    asio::posix::stream_descriptor stream;
    Events events;
    std::deque<Packet> waiting;
    bool waits_for_room = false;
};

// One packet a turn. A server that has gone shows as an end or an error.
void Channel::Impl::take() {
    std::string text(kMostBytes, '\0');
    const ssize_t bytes = ::recv(stream.native_handle(), text.data(), text.size(), MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return read();
    if (bytes <= 0) return end();
    text.resize(static_cast<std::size_t>(bytes));
    const auto self = shared_from_this();
    if (const auto told = events.words) told(split(text));
    if (stream.is_open()) read();
}

void Channel::Impl::flush() {
    while (!waiting.empty() && stream.is_open()) {
        const Packet& packet = waiting.front();
        std::vector<int> fds;
        for (const UniqueFd& fd : packet.fds) fds.push_back(fd.get());
        const auto sent = keeper::send_packet(stream.native_handle(), packet.text.data(),
                                              packet.text.size(), fds);
        if (sent == keeper::Transfer::would_block) {
            if (std::exchange(waits_for_room, true)) return;
            return stream.async_wait(asio::posix::stream_descriptor::wait_write,
                                     [self = shared_from_this()](const auto& error) {
                                         self->waits_for_room = false;
                                         if (!error) self->flush();
                                     });
        }
        // If the server has gone, the end of the socket tells.
        waiting.pop_front();
    }
}

Channel::Channel(asio::io_context& io, UniqueFd socket, Events events)
    : impl_(std::make_shared<Impl>(io, std::move(socket), std::move(events))) {
    impl_->read();
}

Channel::~Channel() {
    impl_->events = {};
    boost::system::error_code ignored;
    impl_->stream.close(ignored);
}

void Channel::send(const Words& words, const std::vector<int>& fds) {
    Impl::Packet packet{join(words), {}};
    for (const int fd : fds)
        if (!packet.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 3))) return impl_->end_later();
    impl_->waiting.push_back(std::move(packet));
    if (!impl_->waits_for_room) impl_->flush();
}

void Channel::send(const Words& words, const Words& payload, const std::vector<int>& fds) {
    std::string text;
    for (const std::string& each : payload) (text += each) += '\0';
    const Result<UniqueFd> file = memory_file(text);
    if (file) ::lseek(file->get(), 0, SEEK_SET);  // the server reads from the descriptor's position
    std::vector<int> all{file ? file->get() : -1};
    all.insert(all.end(), fds.begin(), fds.end());
    send(words, all);
}

}  // namespace ddprun::agent::warm
