// Calls as tasks of a queue.
#include "trainer/group/queued_group.h"

namespace ddprun::trainer {

// start() runs now, in the caller's thread and in the caller's order; work() runs in its turn.
Work QueuedGroup::enqueue(const Operation& operation) {
    return queue_.push([this, operation, started = start(operation, false)] {
        return work(operation, started.get());
    });
}

Result<void> QueuedGroup::carry_out(const Operation& operation) {
    return queue_.run_now([this, operation, started = start(operation, true)] {
        return work(operation, started.get());
    });
}

Result<void> QueuedGroup::in_turn(const std::function<Result<void>()>& task) {
    return queue_.run_now(task);
}

// Runs on the queue's thread, or in the caller's thread if the queue is empty. Never in both at a
// time.
Result<void> QueuedGroup::work(const Operation& operation, Started* started) {
    if (auto end = over()) return *end;
    const CallTeller::Call told(teller(), operation);
    auto done = operation.kind == Collective::monitored_barrier ? meet_monitored(operation)
                                                                : run(operation, started);
    if (done) return {};
    return fail({operation, describe(operation), done.error(), lost_});
}

}  // namespace ddprun::trainer
