// Work: the handle on an operation that was begun.
//
// Copies refer to the same operation. A Work may outlive its group. Any thread may use it.
#pragma once

#include <chrono>
#include <memory>

#include "base/error.h"
#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {

class [[nodiscard]] Work {
  public:
    using Time = std::chrono::steady_clock::time_point;

    // What a backend knows about the operation.
    class State {
      public:
        virtual ~State() = default;
        virtual Result<void> wait() = 0;
        virtual Result<void> wait(GpuStream stream) = 0;
        virtual bool done() = 0;
        virtual Time ended() = 0;
    };
    explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

    // Blocks the host until the operation is done and returns its result. The group's timeout
    // limits the wait.
    Result<void> wait() const { return state_->wait(); }

    // What `stream` is given from now on comes after the operation. On a GPU group it never blocks
    // the host, and an error that is not known yet comes from a later call of the group. A group on
    // host memory waits here.
    Result<void> wait(GpuStream stream) const { return state_->wait(stream); }

    bool done() const { return state_->done(); }

    // When the operation ended, as the host has seen it. The clock's epoch if it has not ended, or
    // never began.
    Time ended() const { return state_->ended(); }

    // The handle on something that is already over, e.g. a call that failed before it was queued.
    static Work finished(Result<void> result);

  private:
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::trainer
