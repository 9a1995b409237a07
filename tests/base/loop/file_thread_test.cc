#include "base/loop/file_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

// Work is done in the order of posting, on one thread that is not the loop's; results come on the
// loop.
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
    loop.run();  // returns when nothing is owed any more
    EXPECT_EQ(told.size(), 100u);
    EXPECT_EQ(worked, told);
}

// What was posted is done before the destructor returns, though nobody hears of it.
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
    loop.run();
    EXPECT_FALSE(told);
}

// A file system that hangs: the loop may end, and the destructor gives up after 2 s; what wakes up
// later harms nobody.
TEST(FileThread, LeavesHangingWorkBehind) {
    std::promise<void> release;
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
        FileThread unused(loop);  // one that never worked has no thread to wait for
    }
    release.set_value();
    EXPECT_EQ(last.wait_for(std::chrono::seconds{10}), std::future_status::ready);
    EXPECT_FALSE(told);
}

// An answer in time, whether there is one or not; and none once nobody wants results any more.
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
    files.post_within(
        std::chrono::seconds{20}, [] {}, tell("quick"));
    ASSERT_TRUE(run_until(loop, [&] { return told.size() == 1; }));
    std::promise<void> release;
    const auto hang = [waits = release.get_future().share()] { waits.wait(); };
    files.post_within(milliseconds{1}, hang, tell("hung"));
    ASSERT_TRUE(run_until(loop, [&] { return told.size() == 2; }));
    files.post_within(
        milliseconds{1}, [] {}, tell("abandoned"));
    files.abandon();
    loop.restart();
    loop.run();
    release.set_value();
    EXPECT_EQ(told, (std::vector<std::string>{"quick in time", "hung late"}));
}

// Who waits for the end goes on waiting while work gets on, and not for ever where it does not.
TEST(FileThread, DrainWaitsWhileWorkGetsOn) {
    asio::io_context loop;
    FileThread files(loop);
    EXPECT_TRUE(files.drain(std::chrono::seconds{10}));
    bool done = false;
    files.post([progress = files.progress(), &done] {
        for (int i = 0; i < 30; ++i) {
            ++*progress;
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        done = true;
    });
    EXPECT_TRUE(files.drain(std::chrono::seconds{10}));
    EXPECT_TRUE(done);
    std::promise<void> gate;
    files.post([waits = gate.get_future().share()] { waits.wait(); });
    EXPECT_FALSE(files.drain(std::chrono::milliseconds{100}));
    gate.set_value();
    EXPECT_TRUE(files.drain(std::chrono::seconds{10}));
}

}  // namespace
}  // namespace ddprun
