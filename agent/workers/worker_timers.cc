// Opens a FIFO for each generation, and acts on expired timers.
#include "agent/workers/worker_timers.h"

#include "agent/output/attempt_names.h"
#include "agent/workers/worker_plan.h"

namespace ddprun::agent {
namespace {

// Expired timers of processes that are no workers, told in each generation.
constexpr int kStrangers = 10;

}  // namespace

std::string WorkerTimers::serve(const std::string& folder) {
    if (path_.empty() && folder.empty()) {
        fifo_.reset();
        warn_("no folder for the workers' timers; name a file in " + std::string(kTimerVariable));
        return {};
    }
    strangers_ = 0;
    auto opened = TimerFifo::open(
        loop_, files_, path_.empty() ? folder + "/" + kTimerFile : path_,
        [this](const TimerRequest& request) { expired(request); }, warn_);
    // Only now: the old FIFO may have the same path, and its destructor removes nothing but its own
    // file.
    fifo_.reset();
    if (!opened) {
        warn_(opened.error().sentence());
        return {};
    }
    fifo_ = std::move(*opened);
    return fifo_->path();
}

void WorkerTimers::expired(const TimerRequest& request) {
    if (request.signal <= 0) return;
    const std::string timer =
        "timer " + request.scope + " of process " + std::to_string(request.pid) + " has expired";
    if (send_(request.pid, request.signal, "its timer " + request.scope + " has run out"))
        return warn_(timer + "; it is sent signal " + std::to_string(request.signal));
    // Any worker can write timers of any process, without end.
    if (++strangers_ > kStrangers) return;
    warn_(timer + ", but this is no worker of ours" +
          (strangers_ == kStrangers ? "; further ones are not told" : ""));
}

}  // namespace ddprun::agent
