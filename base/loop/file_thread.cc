#include "base/loop/file_thread.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace ddprun {

namespace asio = boost::asio;

// A posting point of the program: the lock guards the queue and the way to the loop,
// never work or results.
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
    std::optional<Guard> guard;        // while a result is owed
    std::size_t owed = 0;
    std::thread thread;
    const Progress progress = std::make_shared<std::atomic<std::uint64_t>>(0);

    void run();
    void deliver(std::function<void()> done);
};

void FileThread::Shared::run() {
    std::unique_lock held(lock);
    while (true) {
        changed.wait(held, [this] { return ending || !jobs.empty(); });
        if (jobs.empty()) return;
        Job job = std::move(jobs.front());
        jobs.pop_front();
        working = true;
        held.unlock();
        job.work();
        job.work = nullptr;  // what it holds goes on this thread, before anyone is told
        held.lock();
        working = false;
        ++*progress;
        deliver(std::move(job.done));
        changed.notify_all();
    }
}

// Under the lock, so that the loop cannot be destroyed between the look and the post.
void FileThread::Shared::deliver(std::function<void()> done) {
    if (!done || !loop) return;
    // Between the post and the call abandon() may come. It runs on the loop like the call, so
    // reading needs no lock.
    asio::post(*loop, [self = shared_from_this(), done = std::move(done)] {
        if (self->loop) done();
    });
    if (--owed == 0) guard.reset();
}

FileThread::FileThread(asio::io_context& loop) : shared_(std::make_shared<Shared>()) {
    shared_->loop = &loop;
}

void FileThread::post(std::function<void()> work, std::function<void()> done) {
    const std::lock_guard held(shared_->lock);
    if (done && shared_->loop && shared_->owed++ == 0)
        shared_->guard.emplace(shared_->loop->get_executor());
    shared_->jobs.push_back({std::move(work), std::move(done)});
    if (!shared_->thread.joinable())
        shared_->thread = std::thread([shared = shared_] { shared->run(); });
    shared_->changed.notify_all();
}

void FileThread::post_within(Duration patience, std::function<void()> work,
                             std::function<void(bool)> done) {
    if (!shared_->loop) return post(std::move(work));
    const auto timer = std::make_shared<asio::steady_timer>(*shared_->loop, patience);
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

FileThread::~FileThread() {
    abandon();
    std::unique_lock held(shared_->lock);
    shared_->ending = true;
    shared_->changed.notify_all();
    const bool idle = shared_->changed.wait_for(held, std::chrono::seconds{2}, [this] {
        return shared_->jobs.empty() && !shared_->working;
    });
    std::thread thread = std::move(shared_->thread);
    held.unlock();
    if (!thread.joinable()) return;
    if (idle)
        thread.join();
    else
        thread.detach();  // it hangs in the kernel: nothing here can end it
}

}  // namespace ddprun
