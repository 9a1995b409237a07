// WorkQueue: the thread on which a process group carries out operations that were begun, in order.
// Work: the handle on one of these operations.
//
// The thread starts with the first push(). A group whose calls all block has no thread. Threads:
// push(), run_now() and stop() are for one thread at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace ddprun::trainer {

// The handle on an operation that was begun. Copies refer to the same operation. A Work may outlive
// its group. Any thread may use it. [[nodiscard]]: who drops it can never know when the buffer is
// free again.
class [[nodiscard]] Work {
  public:
    struct State;
    explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

    // Blocks until the operation is done and returns its result. The group's timeout limits the
    // wait.
    Result<void> wait() const;
    bool done() const;

    // When the operation ended. The clock's epoch if it has not ended, or never began.
    std::chrono::steady_clock::time_point ended() const;

    // The handle on something that is already over, e.g. a call that failed before it was queued.
    static Work finished(Result<void> result);

  private:
    std::shared_ptr<State> state_;
};

class WorkQueue {
  public:
    using Task = std::function<Result<void>()>;

    WorkQueue() = default;
    ~WorkQueue() { stop(); }
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    // Queues a task. After stop() the Work has failed already, with `closed`.
    Work push(Task task);

    // Runs the task in the calling thread if nothing is queued, because changing the thread costs
    // more than a small message. Otherwise queues it and waits.
    Result<void> run_now(const Task& task);

    // Carries out all queued tasks, then ends the thread. To hurry, make the tasks fail first.
    void stop();

  private:
    struct Entry {
        Task task;
        std::shared_ptr<Work::State> state;
    };
    void serve();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Entry> entries_;  // the first one is running
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace ddprun::trainer
