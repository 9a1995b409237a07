// Reads timer requests from the FIFO and waits for the next timer.
#include "agent/workers/timer_fifo.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/system/careful_open.h"

namespace ddprun::agent {
namespace {

// PIPE_BUF: writes up to this size are atomic, so lines of several workers do not mix.
constexpr std::size_t kLongestLine = 4096;

// The workers write times of day (Python's time.time()), so the time of day is used here, too.
double wall_now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace

Result<std::unique_ptr<TimerFifo>> TimerFifo::open(boost::asio::io_context& loop, FileThread& files,
                                                   std::string path, OnExpired on_expired,
                                                   Warn warn) {
    auto made = make_fifo(path);
    if (!made)
        return Error(ErrorCode::unavailable, "timer file " + path + ": " + made.error().sentence());
    std::unique_ptr<TimerFifo> fifo(
        new TimerFifo(loop, files, std::move(path), std::move(on_expired), std::move(warn)));
    fifo->fifo_.assign(made->release());
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

// Removes the FIFO, unless the next generation has made another one at the same path. The inode
// number tells them apart.
TimerFifo::~TimerFifo() {
    struct stat status {};
    ::fstat(fifo_.native_handle(), &status);
    files_.post([path = path_, own = status.st_ino] {
        struct stat now {};
        if (::lstat(path.c_str(), &now) == 0 && now.st_ino == own) ::unlink(path.c_str());
    });
}

// `alive` guards against a handler that runs after the destructor.
void TimerFifo::await_lines() {
    fifo_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
                         if (error || !alive.lock()) return;
                         take_lines();
                         arm();
                         await_lines();
                     });
}

// One read for each wake-up: the loop wakes again if there is more.
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
            // Only once: a program may write the same wrong line again and again.
            warned_ = true;
            warn_(path_ + ": " + request.error().sentence());
        }
    }
    // A line without end must not fill the memory.
    if (rest_.size() > kLongestLine) rest_.clear();
}

// Sets the loop's timer to the next expiry.
void TimerFifo::arm() {
    timer_.cancel();
    const auto next = table_.next();
    if (!next) return;
    // At most one day: somebody may set the clock, so the time is looked at again.
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
