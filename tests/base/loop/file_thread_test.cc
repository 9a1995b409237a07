// FileThread with a real loop and a real thread. A promise that is not yet set stands for a file
// system that hangs.
#include "base/loop/file_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

// Work runs in the order of posting, on one thread that is not the loop's. Results come on the
// loop, in the same order. Callers rely on it: a folder is made by one job, and the next one writes
// into it.
TEST(FileThread, WorksInOrderAndAnswersOnTheLoop) {
    asio::io_context loop;
    FileThread files(loop);
    std::vector<std::size_t> worked, told;
    std::vector<std::thread::id> workers(100);
    for (std::size_t i = 0; i < 100; ++i)
        files.post(
            [&, i] {
                worked.push_back(i);
                workers[i] = std::this_thread::get_id();
            },
            [&, i] {
                EXPECT_NE(workers[i], std::this_thread::get_id());
                told.push_back(i);
            });
    loop.run();  // returns when no answer is owed any more
    EXPECT_EQ(told.size(), 100u);
    EXPECT_EQ(worked, told);
}

// Where no thread is to be had (ulimit -u), the work is done all the same, here and in order; a
// thread takes over as soon as there is one. A stack that no address space can hold plays the
// limit.
TEST(FileThread, WorksWithoutAThread) {
    pthread_attr_t usual, impossible;
    ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
    ASSERT_EQ(pthread_attr_init(&impossible), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&impossible, std::size_t{1} << 48), 0);
    ASSERT_EQ(pthread_setattr_default_np(&impossible), 0);
    asio::io_context loop;
    FileThread files(loop);
    std::vector<int> happened;
    files.post([&] { happened.push_back(1); }, [&] { happened.push_back(3); });
    files.post([&] { happened.push_back(2); });
    ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
    EXPECT_EQ(happened, (std::vector{1, 2}));
    loop.run();
    EXPECT_EQ(happened, (std::vector{1, 2, 3}));
    loop.restart();
    std::thread::id worker;
    files.post([&] { worker = std::this_thread::get_id(); }, [] {});
    loop.run();
    EXPECT_NE(worker, std::this_thread::get_id());
    EXPECT_TRUE(files.drain(std::chrono::seconds{30}));
}

// Nothing that was posted may be lost, for example the last lines of a worker's log file. The
// destructor does it before it returns. After abandon() no answer comes.
TEST(FileThread, FinishesPendingWorkAtTheEnd) {
    asio::io_context loop;
    std::atomic<int> worked = 0;
    bool told = false;
    {
        FileThread files(loop);
        for (int i = 0; i < 10; ++i) files.post([&] { ++worked; }, [&] { told = true; });
        files.abandon();
    }
    EXPECT_EQ(worked, 10);
    // An answer that was posted although nobody wants it would run here.
    loop.run();
    EXPECT_FALSE(told);
}

// The first job hangs like a dead NFS server. The loop may end all the same, and the destructor
// detaches the thread after 2 s. When the file system wakes up, the thread finishes its work
// without the objects that are gone.
TEST(FileThread, LeavesHangingWorkBehind) {
    std::promise<void> release;
    // Shared with the second job, because it runs after this block has destroyed the loop and the
    // FileThread.
    auto finished = std::make_shared<std::promise<void>>();
    auto last = finished->get_future();
    bool told = false;
    {
        asio::io_context loop;
        FileThread files(loop);
        files.post([hang = release.get_future().share()] { hang.wait(); }, [&] { told = true; });
        files.post([finished] { finished->set_value(); }, [&] { told = true; });
        files.abandon();
        loop.run();
        FileThread unused(loop);  // one without work has no thread to wait for
    }
    release.set_value();
    EXPECT_EQ(last.wait_for(std::chrono::seconds{10}), std::future_status::ready);
    EXPECT_FALSE(told);
}

// post_within() answers once: in time, or late while the work still hangs. After abandon() it does
// not answer, although its time is over. The agent writes the stop file this way: a stalled disk
// must not hold back the signal to the workers.
TEST(FileThread, AnswersWithinATime) {
    using std::chrono::milliseconds;
    asio::io_context loop;
    FileThread files(loop);
    std::vector<std::string> told;
    const auto tell = [&](const char* who) {
        return [&told, who](bool in_time) {
            told.push_back(who + std::string(in_time ? " in time" : " late"));
        };
    };
    // 20 s is longer than any pause of a test machine, so this answer always comes in time.
    files.post_within(
        std::chrono::seconds{20}, [] {}, tell("quick"));
    ASSERT_TRUE(run_until(loop, [&] { return told.size() == 1; }));
    std::promise<void> release;
    const auto hang = [waits = release.get_future().share()] { waits.wait(); };
    // 1 ms is over at once, and the work cannot end before `release` is set. So this answer is
    // always late.
    files.post_within(milliseconds{1}, hang, tell("hung"));
    ASSERT_TRUE(run_until(loop, [&] { return told.size() == 2; }));
    files.post_within(
        milliseconds{1}, [] {}, tell("abandoned"));
    files.abandon();
    // The loop ends only when the timer of the abandoned job has ended too.
    loop.restart();
    loop.run();
    release.set_value();
    EXPECT_EQ(told, (std::vector<std::string>{"quick in time", "hung late"}));
}

// At the end of the process, drain() must tell a slow disk from a dead one. It waits as long as the
// progress counter moves, and gives up only when the counter stands still for the whole patience.
TEST(FileThread, DrainWaitsWhileWorkGetsOn) {
    asio::io_context loop;
    FileThread files(loop);
    EXPECT_TRUE(files.drain(std::chrono::seconds{10}));  // nothing was posted
    bool done = false;
    // Slow work: 30 steps of 10 ms, and the counter moves at each.
    files.post([progress = files.progress(), &done] {
        for (int i = 0; i < 30; ++i) {
            ++*progress;
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        done = true;
    });
    EXPECT_TRUE(files.drain(std::chrono::seconds{10}));
    EXPECT_TRUE(done);
    // Work without progress. drain() gives up after 100 ms, and succeeds when the work is free
    // again.
    std::promise<void> gate;
    files.post([waits = gate.get_future().share()] { waits.wait(); });
    EXPECT_FALSE(files.drain(std::chrono::milliseconds{100}));
    gate.set_value();
    EXPECT_TRUE(files.drain(std::chrono::seconds{10}));
}

}  // namespace
}  // namespace ddprun
