// Reads the progress pipe of a worker.
#include "agent/workers/progress_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace ddprun::agent {

UniqueFd ProgressPipe::open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    // Only our end: a program that writes progress must not see EAGAIN.
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pipe_.assign(ends[0]);
    UniqueFd workers(ends[1]);
    await();
    return workers;
}

void ProgressPipe::finish() {
    finished_ = true;
    take();
}

void ProgressPipe::await() {
    pipe_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
                         if (error || !alive.lock() || finished_) return;
                         if (take()) await();
                     });
}

// Takes everything that is in the pipe. Returns false at its end. The pipe must be read on: if it
// filled up, the worker would stop in its write().
bool ProgressPipe::take() {
    char bytes[ProgressLines::kLongest];
    ssize_t got;
    while ((got = ::read(pipe_.native_handle(), bytes, sizeof bytes)) > 0)
        for (const ProgressReport& report :
             lines_.take(std::string_view(bytes, static_cast<std::size_t>(got))))
            on_report_(report);
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

}  // namespace ddprun::agent
