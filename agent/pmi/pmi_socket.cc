// Reads lines from a worker's PMI socket and writes the answers.
#include "agent/pmi/pmi_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/pmi/pmi_request.h"

namespace ddprun::agent::pmi {

using boost::asio::posix::stream_descriptor;

namespace {

// More than a socket holds. A process that the worker left behind may write on.
constexpr int kReadsAtTheEnd = 256;

}  // namespace

Socket::Socket(boost::asio::io_context& loop, std::shared_ptr<TurnBudget> turns, OnLine on_line,
               OnFault on_fault)
    : socket_(loop),
      turns_(std::move(turns)),
      on_line_(std::move(on_line)),
      on_fault_(std::move(on_fault)) {}

UniqueFd Socket::open() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
    // Only our end: the program expects calls that wait.
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    socket_.assign(ends[0]);
    await();
    return UniqueFd(ends[1]);
}

void Socket::stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    socket_.cancel(ignored);
}

void Socket::await() {
    socket_.async_wait(stream_descriptor::wait_read, [this, alive = std::weak_ptr(alive_)](
                                                         const boost::system::error_code& error) {
        if (error || !alive.lock() || stopped_) return;
        turns_->spend(
            [this, alive]() -> std::size_t { return alive.lock() && !stopped_ ? take_some() : 0; });
    });
}

void Socket::finish() {
    const std::weak_ptr alive(alive_);
    for (int reads = kReadsAtTheEnd; reads > 0 && !stopped_; --reads)
        if (read_once() == 0 || !alive.lock()) break;
    if (alive.lock()) stop();
}

std::size_t Socket::take_some() {
    const std::weak_ptr alive(alive_);
    const std::size_t got = read_once();
    if (alive.lock() && !stopped_) await();
    return got;
}

// At its end the worker tells nothing more; how it has ended is seen elsewhere.
std::size_t Socket::read_once() {
    char bytes[kLongestLine];
    const ssize_t got = ::recv(socket_.native_handle(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) stop();
    if (got <= 0) return 0;
    read_.append(bytes, static_cast<std::size_t>(got));
    const std::weak_ptr alive(alive_);
    take_lines();
    if (alive.lock() && !stopped_ && read_.size() > kLongestLine)
        fault("it has sent a line of more than " + std::to_string(kLongestLine) +
              " bytes to its PMI descriptor");
    return static_cast<std::size_t>(got);
}

void Socket::take_lines() {
    const std::weak_ptr alive(alive_);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = read_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
        on_line_(std::string_view(read_).substr(begin, end - begin));
        if (!alive.lock() || stopped_) return;
    }
    read_.erase(0, begin);
}

void Socket::send(std::string_view line) {
    if (stopped_) return;
    unread_.append(line).append("\n");
    flush();
    if (unread_.size() > kMostUnread) fault("it does not read the answers on its PMI descriptor");
}

void Socket::flush() {
    if (writing_) return;
    const ssize_t sent = ::send(socket_.native_handle(), unread_.data(), unread_.size(),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) unread_.erase(0, static_cast<std::size_t>(sent));
    // The worker has closed its end. What it has written before counts.
    if (sent < 0 && errno != EAGAIN && errno != EINTR) unread_.clear();
    if (unread_.empty()) return;
    writing_ = true;
    socket_.async_wait(stream_descriptor::wait_write, [this, alive = std::weak_ptr(alive_)](
                                                          const boost::system::error_code& error) {
        if (error || !alive.lock() || stopped_) return;
        writing_ = false;
        flush();
    });
}

void Socket::fault(const std::string& why) {
    stop();
    on_fault_(why);
}

}  // namespace ddprun::agent::pmi
