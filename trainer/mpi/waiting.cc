// Short steps of MPI, and looks around between them.
#include "trainer/mpi/waiting.h"

#include <sched.h>

#include <string>
#include <thread>
#include <utility>

namespace ddprun::trainer {
namespace {
// How long a wait looks for messages without a pause, and the pauses after that.
constexpr auto kEager = std::chrono::milliseconds(2);
constexpr auto kPause = std::chrono::microseconds(50);
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr auto kAsk = std::chrono::milliseconds(500);
}  // namespace

Waiting::Waiting(const Group& group, const Operation& operation)
    : group_(group),
      operation_(operation),
      begin_(Clock::now()),
      look_(begin_ + kLook),
      ask_(begin_ + kAsk) {}

// Ranks that share a core make room for each other.
Result<void> Waiting::wait(std::vector<MPI_Request>& requests) {
    while (true) {
        int done = 0;
        auto tested = group_.session.call([&] {
            return MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                               MPI_STATUSES_IGNORE);
        });
        const auto now = Clock::now();
        if (!tested) {
            if (auto why = trouble(look_ = now)) return *why;
            return tested;
        }
        if (done) return {};
        if (auto why = trouble(now)) return *why;
        if (now - begin_ < kEager)
            sched_yield();
        else
            std::this_thread::sleep_for(kPause);
    }
}

std::optional<Error> Waiting::trouble(Clock::time_point now) {
    if (group_.cut) return Error(ErrorCode::closed, "this rank's group was aborted");
    if (now >= look_) {
        look_ = now + kLook;
        lost_ = group_.neighbours.look();
        if (lost_ >= 0)
            return Error(ErrorCode::closed, "the connection to " +
                                                name_rank(lost_, group_.context.job_ranks) +
                                                " was closed: that rank has died or given up");
    }
    if (now - begin_ >= group_.timeout)
        return Error(ErrorCode::timed_out,
                     "it has not ended within " + std::to_string(group_.timeout.count()) + " ms");
    if (now < ask_) return std::nullopt;
    ask_ = now + kAsk;
    return others_say();
}

// A rank that waits for a rank which hangs learns here that a third one has failed. A call that was
// there the last time too may wait for a rank that waits for us in another call.
std::optional<Error> Waiting::others_say() {
    if (group_.story.elsewhere())
        return Error(ErrorCode::closed, "another rank's group has failed");
    if (!std::exchange(asked_, true)) return std::nullopt;
    return group_.story.other_call(operation_);
}

}  // namespace ddprun::trainer
