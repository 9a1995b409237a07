// QueuedGroup: a process group that carries out its calls one after the other on a thread of the
// host. The base of backends whose calls block, as Gloo's do.
#pragma once

#include <memory>

#include "trainer/group/process_group.h"
#include "trainer/group/work_queue.h"

namespace ddprun::trainer {

class QueuedGroup : public ProcessGroup {
  protected:
    using ProcessGroup::ProcessGroup;

    // What a backend did for an operation before its turn. The object lives until the operation is
    // done or refused. It is destroyed before the operation's Work reports the end.
    struct Started {
        virtual ~Started() = default;
    };

    // Does what is possible before the operation's turn. Runs in the caller's thread.
    // `caller_waits`: the call blocks (call()); false for begin(). Null if there is nothing to do
    // ahead.
    virtual std::shared_ptr<Started> start(const Operation& operation, bool caller_waits) = 0;

    // Moves the data. Any error ends the group, whatever its code. `started` is what start()
    // returned; it may be null.
    virtual Result<void> run(const Operation& operation, Started* started) = 0;

    // A backend that knows it reports here which rank's connection closed first.
    void lose(int rank) { lost_ = rank; }

    // After this no operation is running and none will start. A backend's destructor calls it
    // first.
    void stop() { queue_.stop(); }

    Work enqueue(const Operation& operation) final;
    Result<void> carry_out(const Operation& operation) final;
    Result<void> in_turn(const std::function<Result<void>()>& task) final;

  private:
    Result<void> work(const Operation& operation, Started* started);

    int lost_ = -1;  // set by lose(); -1: unknown
    WorkQueue queue_;
};

}  // namespace ddprun::trainer
