// The thread on which a process group carries out what was begun, in order, and the handle on one
// such piece of work.
//
// The thread starts with the first push(); a group whose calls all block has none. Thread: push(),
// run_now() and stop() of one thread at a time.
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

// What was begun. Copies are the same work; it outlives its group. Any thread.
class Work {
  public:
    struct State;
    explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

    // Blocks until the work is done. The group's time-out bounds it.
    Result<void> wait() const;
    bool done() const;

    // When it was done; the clock's first moment before that, and for what never began.
    std::chrono::steady_clock::time_point ended() const;

    // What has failed before it began, and what was done already.
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

    Work push(Task task);

    // In the calling thread when nothing is queued (a change of threads costs more than a small
    // message), else in its turn.
    Result<void> run_now(const Task& task);

    // Carries out what is queued, then ends the thread. To hurry, make the tasks fail first.
    void stop();

  private:
    struct Entry {
        Task task;
        std::shared_ptr<Work::State> state;
    };
    void serve();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Entry> entries_;  // the first one is in progress
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace ddprun::trainer
