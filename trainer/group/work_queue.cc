// A queue of tasks with one thread, and the state that a task shares with its Work handles.
#include "trainer/group/work_queue.h"

#include <chrono>
#include <utility>

namespace ddprun::trainer {

// Shared by the queue and all copies of the Work. It may outlive the queue.
class WorkQueue::State final : public Work::State {
  public:
    Result<void> wait() override {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return done_; });
        return result_;
    }
    // The task works in host memory, so no stream can wait for it.
    Result<void> wait(GpuStream) override { return wait(); }
    bool done() override {
        std::lock_guard lock(mutex_);
        return done_;
    }
    Work::Time ended() override {
        std::lock_guard lock(mutex_);
        return ended_;
    }
    void end(Result<void> result, Work::Time when) {
        {
            std::lock_guard lock(mutex_);
            result_ = std::move(result);
            ended_ = when;
            done_ = true;
        }
        changed_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    Result<void> result_;
    Work::Time ended_{};
};

Work WorkQueue::push(Task task) {
    auto state = std::make_shared<State>();
    {
        std::lock_guard lock(mutex_);
        if (stopping_) {
            return Work::finished(Error(ErrorCode::closed, "the process group is being destroyed"));
        }
        // Started late: a program that only makes blocking calls never needs this thread. Before
        // the task is queued: a task that nobody carries out would make the queue look busy.
        if (!thread_.joinable()) {
            auto started = start_thread("asynchronous calls", [this] { serve(); });
            if (!started) return Work::finished(started.error());
            thread_ = std::move(*started);
        }
        entries_.push_back({std::move(task), state});
    }
    changed_.notify_all();
    return Work(std::move(state));
}

// The queue cannot fill between the look and the run, because only this thread pushes.
Result<void> WorkQueue::run_now(const Task& task) {
    bool idle = false;
    {
        std::lock_guard lock(mutex_);
        idle = entries_.empty();
    }
    return idle ? task() : push(task).wait();
}

void WorkQueue::serve() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return stopping_ || !entries_.empty(); });
        // stop() was called and everything queued is done.
        if (entries_.empty()) return;
        // The entry stays at the front while its task runs: an empty queue means that nothing is
        // running.
        Entry entry{std::exchange(entries_.front().task, nullptr), entries_.front().state};
        lock.unlock();
        Result<void> result = entry.task();
        // Taken right after the task, so that the waiting for locks does not count as
        // communication.
        const auto ended = std::chrono::steady_clock::now();
        // Destroys what the task holds before anybody learns that it is done. The task may hold
        // registrations of the caller's buffer with the network, and the caller may free the buffer
        // after wait().
        entry.task = nullptr;
        lock.lock();
        entries_.pop_front();
        entry.state->end(std::move(result), ended);
    }
}

// What is queued still runs, because somebody may wait for it.
void WorkQueue::stop() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

}  // namespace ddprun::trainer
