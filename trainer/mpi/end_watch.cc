// Waits for the end of MPI beside it.
#include "trainer/mpi/end_watch.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "trainer/worker/error_file.h"

namespace ddprun::trainer {
namespace {

// No destructor may run: another thread is inside MPI. What the program has printed is kept.
[[noreturn]] void end_process(std::chrono::milliseconds limit) {
    const Error error(
        ErrorCode::timed_out,
        "MPI_Finalize() has not ended within " + std::to_string(limit.count()) +
            " ms, though all ranks have come to it, so this process ends without it; if it happens "
            "again, choose another transport for MPI (UCX_TLS, FI_PROVIDER)");
    std::fprintf(stderr, "%s\n", error.sentence().c_str());
    std::fflush(stdout);
    _exit(report_error(error));
}

}  // namespace

EndWatch::EndWatch(std::chrono::milliseconds limit) {
    if (auto thread = start_thread("the end of MPI", [this, limit] { watch(limit); }))
        thread_ = std::move(*thread);
}

EndWatch::~EndWatch() {
    {
        std::lock_guard lock(mutex_);
        in_time_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void EndWatch::watch(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, limit, [this] { return in_time_; })) end_process(limit);
}

}  // namespace ddprun::trainer
