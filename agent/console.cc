#include "agent/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "agent/unique_fd.h"
#include "proto/boot_clock.h"

namespace ddprun::agent {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;  // small writes are gathered up to this

// How bytes can be written without ever waiting.
enum class Kind {
    file,    // write(2) at once; also /dev/null
    own,     // a description of our own, with O_NONBLOCK
    socket,  // MSG_DONTWAIT
    shared,  // poll, then no more than PIPE_BUF
};

UniqueFd reopen(int fd) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return UniqueFd(::open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_APPEND | O_CLOEXEC));
}

Kind open_for_writing(int fd, UniqueFd& out) {
    out.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    struct stat what {};
    if (::fstat(fd, &what) != 0) return Kind::shared;
    if (S_ISSOCK(what.st_mode)) return Kind::socket;
    if (!S_ISFIFO(what.st_mode) && ::isatty(fd) == 0) return Kind::file;
    UniqueFd own = reopen(fd);
    if (!own) return Kind::shared;
    out = std::move(own);
    return Kind::own;
}

// Whether writing may succeed again later: the disk may be emptied, a reader never comes back.
bool may_recover(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

struct Console::Impl : std::enable_shared_from_this<Console::Impl> {
    asio::io_context& io;
    std::string name;
    std::function<void(Error)> broken;
    std::size_t limit;
    UniqueFd fd;  // of a file; otherwise in `stream`
    Kind kind;
    std::unique_ptr<asio::posix::stream_descriptor> stream;
    std::deque<std::string> queue;
    std::size_t written = 0;  // of the first chunk
    std::size_t waiting = 0;
    bool armed = false;
    bool dead = false;  // the reader has gone
    std::vector<std::function<void()>> on_room, on_empty;

    Impl(asio::io_context& io, int shared_fd, std::string name, std::function<void(Error)> broken,
         std::size_t limit)
        : io(io),
          name(std::move(name)),
          broken(std::move(broken)),
          limit(limit),
          kind(open_for_writing(shared_fd, fd)) {
        if (kind != Kind::file && fd)
            stream = std::make_unique<asio::posix::stream_descriptor>(io, fd.release());
    }

    int number() const { return stream ? stream->native_handle() : fd.get(); }
    bool full() const { return waiting >= limit; }
    void append(std::string_view bytes);
    bool room_now() const;
    ssize_t write_some(const char* bytes, std::size_t size);
    bool write_on();
    void fail(int error);
    void arm();
    void tell();
};

void Console::Impl::append(std::string_view bytes) {
    waiting += bytes.size();
    if (!queue.empty() && queue.back().size() + bytes.size() <= kChunk)
        queue.back() += bytes;
    else
        queue.emplace_back(bytes);
}

bool Console::Impl::room_now() const {
    pollfd room{number(), POLLOUT, 0};
    return ::poll(&room, 1, 0) > 0;
}

ssize_t Console::Impl::write_some(const char* bytes, std::size_t size) {
    switch (kind) {
        case Kind::socket:
            return ::send(number(), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        case Kind::shared:
            if (!room_now()) {
                errno = EAGAIN;
                return -1;
            }
            return ::write(number(), bytes, std::min<std::size_t>(size, PIPE_BUF));
        case Kind::own:
        case Kind::file:
            break;
    }
    return ::write(number(), bytes, size);
}

// Writes while there is room. True: nothing waits any more.
bool Console::Impl::write_on() {
    while (!queue.empty()) {
        const std::string& chunk = queue.front();
        const ssize_t n = write_some(chunk.data() + written, chunk.size() - written);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) return false;
            fail(errno);
            return true;
        }
        written += static_cast<std::size_t>(n);
        waiting -= static_cast<std::size_t>(n);
        if (written < chunk.size()) continue;
        queue.pop_front();
        written = 0;
    }
    return true;
}

void Console::Impl::fail(int error) {
    dead = !may_recover(error);
    queue.clear();
    written = waiting = 0;
    if (!broken) return;
    std::string sentence = "cannot write to " + name + ": " + std::strerror(error);
    sentence += dead ? "; nothing more is written there" : "; what does not fit is dropped";
    // From the loop: the caller of write() is amid its own work.
    asio::post(
        io, [report = std::exchange(broken, nullptr), sentence = std::move(sentence), dead = dead] {
            report(Error{dead ? ErrorCode::closed : ErrorCode::unavailable, sentence});
        });
}

void Console::Impl::arm() {
    if (armed || queue.empty() || !stream) return;
    armed = true;
    // async_wait, other than async_write_some, does not touch O_NONBLOCK.
    stream->async_wait(asio::posix::stream_descriptor::wait_write,
                       [self = shared_from_this()](const boost::system::error_code& error) {
                           self->armed = false;
                           if (error) return;
                           self->write_on();
                           self->tell();
                           self->arm();
                       });
}

void Console::Impl::tell() {
    if (waiting <= limit / 2)
        for (auto& callback : std::exchange(on_room, {})) asio::post(io, std::move(callback));
    if (waiting == 0)
        for (auto& callback : std::exchange(on_empty, {})) asio::post(io, std::move(callback));
}

Console::Console(asio::io_context& io, int fd, std::string name, std::function<void(Error)> broken,
                 std::size_t limit)
    : impl_(std::make_shared<Impl>(io, fd, std::move(name), std::move(broken), limit)) {}

Console::~Console() {
    impl_->broken = nullptr;
    impl_->stream.reset();
}

void Console::write(std::string_view bytes) {
    if (bytes.empty() || impl_->dead) return;
    const bool idle = impl_->queue.empty();
    impl_->append(bytes);
    if (idle) impl_->write_on();  // otherwise the loop is already waiting for room
    impl_->arm();
}

std::size_t Console::waiting() const { return impl_->waiting; }
bool Console::full() const { return impl_->full(); }

void Console::when_room(std::function<void()> callback) {
    impl_->on_room.push_back(std::move(callback));
    impl_->tell();
}

void Console::when_empty(std::function<void()> callback) {
    impl_->on_empty.push_back(std::move(callback));
    impl_->tell();
}

bool Console::flush(Duration limit) {
    const Time give_up = boot_now() + limit;
    while (!impl_->write_on()) {
        const Duration left = give_up - boot_now();
        if (left <= Duration::zero()) return false;
        pollfd room{impl_->number(), POLLOUT, 0};
        ::poll(&room, 1, static_cast<int>(left / std::chrono::milliseconds{1}) + 1);
    }
    impl_->tell();
    return true;
}

}  // namespace ddprun::agent
