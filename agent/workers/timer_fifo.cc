#include "agent/workers/timer_fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace ddprun::agent {
namespace {

constexpr std::size_t kLongestLine = 4096;  // PIPE_BUF: what is written in one piece

double wall_now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace

Result<std::unique_ptr<TimerFifo>> TimerFifo::open(boost::asio::io_context& loop, FileThread& files,
                                                   std::string path, OnExpired on_expired,
                                                   Warn warn) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) ::unlink(path.c_str());
    // Both ways, so that it does not end when no worker has it open.
    int fd = -1;
    if (::mkfifo(path.c_str(), 0600) == 0)
        fd = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return Error(ErrorCode::unavailable, "timer file " + path + ": " + std::strerror(errno));
    std::unique_ptr<TimerFifo> fifo(
        new TimerFifo(loop, files, std::move(path), std::move(on_expired), std::move(warn)));
    fifo->fifo_.assign(fd);
    fifo->await_lines();
    return fifo;
}

TimerFifo::TimerFifo(boost::asio::io_context& loop, FileThread& files, std::string path,
                     OnExpired on_expired, Warn warn)
    : files_(files),
      path_(std::move(path)),
      on_expired_(std::move(on_expired)),
      warn_(std::move(warn)),
      fifo_(loop),
      timer_(loop) {}

// Unless the next one has taken its place.
TimerFifo::~TimerFifo() {
    struct stat status {};
    ::fstat(fifo_.native_handle(), &status);
    files_.post([path = path_, own = status.st_ino] {
        struct stat now {};
        if (::lstat(path.c_str(), &now) == 0 && now.st_ino == own) ::unlink(path.c_str());
    });
}

void TimerFifo::await_lines() {
    fifo_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
                         if (error || !alive.lock()) return;
                         take_lines();
                         arm();
                         await_lines();
                     });
}

void TimerFifo::take_lines() {
    char bytes[kLongestLine];
    const ssize_t got = ::read(fifo_.native_handle(), bytes, sizeof bytes);
    if (got <= 0) return;
    rest_.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t end; (end = rest_.find('\n')) != std::string::npos;) {
        auto request = read_timer_request(std::string_view(rest_).substr(0, end));
        rest_.erase(0, end + 1);
        if (request) {
            table_.take(std::move(*request));
        } else if (!warned_) {
            warned_ = true;  // once: it may be written again and again
            warn_(path_ + ": " + request.error().sentence());
        }
    }
    if (rest_.size() > kLongestLine) rest_.clear();
}

void TimerFifo::arm() {
    timer_.cancel();
    const auto next = table_.next();
    if (!next) return;
    // Looked at again once a day at the latest: a wall clock may be set.
    const double wait = std::clamp(*next - wall_now(), 0.0, 86'400.0);
    timer_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(wait)));
    timer_.async_wait(
        [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
            if (error || !alive.lock()) return;
            for (const TimerRequest& request : table_.due(wall_now())) on_expired_(request);
            arm();
        });
}

}  // namespace ddprun::agent
