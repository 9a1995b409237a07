// Reads the progress pipe of a worker.
#include "agent/workers/progress_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace ddprun::agent {
namespace {

// Reads in one turn of the loop. A worker that writes without a pause always has more in the pipe,
// and signals, Beats and output of the others must have their turn.
constexpr int kReadsATurn = 1;
// Reads at the end of a worker: the largest pipe that an ordinary user can make, 1 MiB. A process
// that it left behind may still write.
constexpr int kReadsAtTheEnd = (1 << 20) / static_cast<int>(ProgressLines::kLongest);

}  // namespace

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
    take(kReadsAtTheEnd);
}

void ProgressPipe::await() {
    pipe_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
                         if (error || !alive.lock() || finished_) return;
                         if (take(kReadsATurn)) await();
                     });
}

// Reads so many times, or until the pipe is empty. Returns false at its end. The pipe must be read
// on: if it filled up, the worker would stop in its write().
bool ProgressPipe::take(int reads) {
    char bytes[ProgressLines::kLongest];
    for (; reads > 0; --reads) {
        const ssize_t got = ::read(pipe_.native_handle(), bytes, sizeof bytes);
        if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
        for (const ProgressReport& report :
             lines_.take(std::string_view(bytes, static_cast<std::size_t>(got))))
            on_report_(report);
    }
    return true;
}

}  // namespace ddprun::agent
