// The queue and the thread of FileThread, and the delivery of results to the loop.
#include "base/loop/file_thread.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/system/start_thread.h"

namespace ddprun {

namespace asio = boost::asio;

// State that the thread and the FileThread object share. The thread holds it by shared_ptr, because
// it may outlive the object when a file system hangs.
//
// The mutex guards the queue and the pointer to the loop. It is never held while work or a callback
// runs.
struct FileThread::Shared : std::enable_shared_from_this<FileThread::Shared> {
    struct Job {
        std::function<void()> work;
        std::function<void()> done;
    };
    using Guard = asio::executor_work_guard<asio::io_context::executor_type>;

    std::mutex lock;
    std::condition_variable changed;
    std::deque<Job> jobs;
    bool working = false;  // a job has been taken and is not finished
    bool ending = false;
    asio::io_context* loop = nullptr;  // null: nobody wants results any more
    std::optional<Guard> guard;        // keeps the loop running while a result is owed
    std::size_t owed = 0;              // number of `done` callbacks still to be posted
    Thread thread;
    const Progress progress = std::make_shared<std::atomic<std::uint64_t>>(0);

    bool start();
    void run();
    void work_one(std::unique_lock<std::mutex>& held);
    void deliver(std::function<void()> done);
};

// The thread starts with the first job, so that a process that never needs it stays
// single-threaded. False: no thread is to be had (ulimit -u).
bool FileThread::Shared::start() {
    if (thread.joinable()) return true;
    auto started = start_thread("files", [self = shared_from_this()] { self->run(); });
    if (started) thread = std::move(*started);
    return started.has_value();
}

void FileThread::Shared::run() {
    std::unique_lock held(lock);
    while (true) {
        changed.wait(held, [this] { return ending || !jobs.empty(); });
        if (jobs.empty()) return;
        work_one(held);
    }
}

void FileThread::Shared::work_one(std::unique_lock<std::mutex>& held) {
    Job job = std::move(jobs.front());
    jobs.pop_front();
    working = true;
    held.unlock();
    // Without the lock: the work may hang, and post() must not wait for it.
    job.work();
    // Destroys what the work holds here, on this thread and before `done` runs: closing a file may
    // hang, too.
    job.work = nullptr;
    held.lock();
    working = false;
    ++*progress;
    deliver(std::move(job.done));
    changed.notify_all();
}

// Called with the lock held. So abandon() cannot return, and the loop cannot be destroyed, between
// the check of `loop` and the post.
void FileThread::Shared::deliver(std::function<void()> done) {
    if (!done || !loop) return;
    // abandon() may run between this post and the call. Both run on the loop's thread, so the check
    // of `loop` in the handler needs no lock.
    asio::post(*loop, [self = shared_from_this(), done = std::move(done)] {
        if (self->loop) done();
    });
    if (--owed == 0) guard.reset();
}

FileThread::FileThread(asio::io_context& loop) : shared_(std::make_shared<Shared>()) {
    shared_->loop = &loop;
}

void FileThread::post(std::function<void()> work, std::function<void()> done) {
    std::unique_lock held(shared_->lock);
    if (done && shared_->loop && shared_->owed++ == 0)
        // The first owed result starts the work guard; deliver() drops it with the last one.
        shared_->guard.emplace(shared_->loop->get_executor());
    shared_->jobs.push_back({std::move(work), std::move(done)});
    // Work that may block is better than none.
    if (!shared_->start()) return shared_->work_one(held);
    shared_->changed.notify_all();
}

void FileThread::post_within(Duration patience, std::function<void()> work,
                             std::function<void(bool)> done) {
    // After abandon() nobody wants the answer, but the work itself is still done.
    if (!shared_->loop) return post(std::move(work));
    const auto timer = std::make_shared<asio::steady_timer>(*shared_->loop, patience);
    // The timer and the work race. Whichever comes first calls `done`; the other finds `told` set
    // and does nothing.
    const auto once = [timer, told = std::make_shared<bool>(false),
                       done = std::move(done)](bool in_time) {
        if (std::exchange(*told, true)) return;
        timer->cancel();
        done(in_time);
    };
    timer->async_wait([once, shared = shared_](const boost::system::error_code& error) {
        if (!error && shared->loop) once(false);
    });
    post(std::move(work), [once] { once(true); });
}

FileThread::Progress FileThread::progress() const { return shared_->progress; }

// Looks every 50 ms whether the progress counter has moved. Only a full `patience` without any
// progress counts as hung, so a slow but working disk is waited for.
bool FileThread::drain(Duration patience) {
    constexpr auto kLook = std::chrono::milliseconds{50};
    std::unique_lock held(shared_->lock);
    std::uint64_t last = *shared_->progress;
    for (Duration stood{0}; stood < patience; stood += kLook) {
        if (shared_->changed.wait_for(
                held, kLook, [this] { return shared_->jobs.empty() && !shared_->working; }))
            return true;
        if (const std::uint64_t now = *shared_->progress; now != last) {
            last = now;
            // The loop adds kLook before the next check, so the count starts at zero.
            stood = -kLook;
        }
    }
    return false;
}

void FileThread::abandon() {
    const std::lock_guard held(shared_->lock);
    shared_->loop = nullptr;
    shared_->owed = 0;
    shared_->guard.reset();
}

void FileThread::let_go() {
    abandon();
    const std::lock_guard held(shared_->lock);
    shared_->ending = true;
    shared_->changed.notify_all();
    if (shared_->thread.joinable()) shared_->thread.detach();
}

// Waits up to 2 s for pending work. A thread that is stuck in a system call cannot be ended from
// here, so it is detached. It touches only Shared, which it owns.
FileThread::~FileThread() {
    abandon();
    std::unique_lock held(shared_->lock);
    if (shared_->ending) return;  // let_go()
    shared_->ending = true;
    shared_->changed.notify_all();
    const bool idle = shared_->changed.wait_for(held, std::chrono::seconds{2}, [this] {
        return shared_->jobs.empty() && !shared_->working;
    });
    Thread thread = std::move(shared_->thread);
    held.unlock();
    if (!thread.joinable()) return;
    if (idle)
        thread.join();
    else
        thread.detach();
}

}  // namespace ddprun
