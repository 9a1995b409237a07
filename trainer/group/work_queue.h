// WorkQueue: a thread that carries out tasks, in order. Each has a Work as its handle.
//
// The thread starts with the first push(). A group whose calls all block has no thread. Threads:
// push(), run_now() and stop() are for one thread at a time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/system/start_thread.h"
#include "trainer/group/work.h"

namespace ddprun::trainer {

class WorkQueue {
  public:
    using Task = std::function<Result<void>()>;

    WorkQueue() = default;
    ~WorkQueue() { stop(); }
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    // Queues a task. After stop() the Work has failed already, with `closed`; so it has where no
    // thread is to be had, with `unavailable`. Then nothing is queued.
    Work push(Task task);

    // Runs the task in the calling thread if nothing is queued, because changing the thread costs
    // more than a small message. Otherwise queues it and waits.
    Result<void> run_now(const Task& task);

    // Carries out all queued tasks, then ends the thread. To hurry, make the tasks fail first.
    void stop();

  private:
    class State;
    struct Entry {
        Task task;
        std::shared_ptr<State> state;
    };
    void serve();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Entry> entries_;  // the first one is running
    bool stopping_ = false;
    Thread thread_;
};

}  // namespace ddprun::trainer
