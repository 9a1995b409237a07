// A queue of tasks with one thread, and the state that a task shares with its Work handles.
#include "trainer/group/work_queue.h"

#include <utility>

namespace ddprun::trainer {

// Shared by the queue and all copies of the Work. It may outlive the queue.
struct Work::State {
    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    bool done = false;
    Result<void> result;
    std::chrono::steady_clock::time_point ended{};
};

Result<void> Work::wait() const {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->done; });
    return state_->result;
}

bool Work::done() const {
    std::lock_guard lock(state_->mutex);
    return state_->done;
}

std::chrono::steady_clock::time_point Work::ended() const {
    std::lock_guard lock(state_->mutex);
    return state_->ended;
}

Work Work::finished(Result<void> result) {
    auto state = std::make_shared<State>();
    state->done = true;
    state->result = std::move(result);
    return Work(std::move(state));
}

Work WorkQueue::push(Task task) {
    auto state = std::make_shared<Work::State>();
    {
        std::lock_guard lock(mutex_);
        if (stopping_) {
            return Work::finished(Error(ErrorCode::closed, "the process group is being destroyed"));
        }
        entries_.push_back({std::move(task), state});
        // Started late: a program that only makes blocking calls never needs this thread.
        if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
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
        {
            std::lock_guard done(entry.state->mutex);
            entry.state->result = std::move(result);
            entry.state->ended = ended;
            entry.state->done = true;
        }
        entry.state->changed.notify_all();
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
