// Helpers that a sweep spares, and workers that they have forked.
#include <csignal>

#include "tests/keeper/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

// A helper that forks a worker which is soon the keeper's child: it waits for a line on descriptor
// 8 and then runs the script. Its pid comes on standard output. The helper stays.
WorkerStart helper_with_worker(const std::string& script) {
    WorkerStart start = shell("( sh -c 'read line <&8 && { " + script +
                              "; }' & echo $! ) ; echo .; exec sleep 300");
    start.spared = true;
    return start;
}

struct KeeperHelpersTest : testing::Test {
    Bench bench;
    Pipe told, release;
    std::int64_t worker = 0;

    // Starts the helper, and waits until its worker is the keeper's child.
    void start(const std::string& script) {
        WorkerStart start = helper_with_worker(script);
        start.stdout_fd = told.in.get();
        start.extra = {{8, release.out.get()}};
        bench.spawn(start);
        release.out.reset();
        ASSERT_TRUE(bench.answered(1));
        std::string text;
        char byte = 0;
        while (text.find('.') == text.npos && ::read(told.out.get(), &byte, 1) == 1) text += byte;
        worker = std::atol(text.c_str());
        ASSERT_GT(worker, 0);
    }
    void adopt() {
        bench.keeper.adopt(worker, release.in.get(), [this](Result<Spawned> result) {
            if (result)
                bench.pids.push_back(result->pid);
            else
                bench.errors.push_back(result.error());
        });
    }
    bool lives(std::int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0; }
    bool sweep() {
        bool done = false;
        bench.keeper.sweep({}, [&](const LeftRunning&) { done = true; });
        return bench.run_until([&] { return done; });
    }
};

}  // namespace

// The helper stays for the next generation, what it has started goes with this one, and both go at
// the end.
TEST_F(KeeperHelpersTest, ASweepSparesAHelperButNotWhatItHasStarted) {
    start("sleep 300");
    ASSERT_TRUE(sweep());
    EXPECT_FALSE(lives(worker));
    EXPECT_TRUE(lives(bench.pids[0]));
    ASSERT_TRUE(sweep()) << "with nothing but the helper";
    EXPECT_TRUE(lives(bench.pids[0]));
    EXPECT_TRUE(bench.exits.empty());
    ASSERT_TRUE(bench.keeper.shutdown());
    EXPECT_FALSE(lives(bench.pids[0]));
}

// A helper that has ended is a child like any other: the sweep finds an end without it.
TEST_F(KeeperHelpersTest, AHelperMayEnd) {
    start("sleep 300");
    ::kill(static_cast<pid_t>(bench.pids[0]), SIGKILL);
    ASSERT_TRUE(bench.exited(1));
    ASSERT_TRUE(sweep());
    EXPECT_FALSE(lives(worker));
}

// It goes on only when the keeper has taken it, and is a worker from then on.
TEST_F(KeeperHelpersTest, AForkedWorkerIsTakenAndReported) {
    start("exit 7");
    adopt();
    ASSERT_TRUE(bench.answered(2));
    ASSERT_EQ(bench.pids.size(), 2U) << bench.errors[0].sentence();
    EXPECT_EQ(bench.pids[1], worker);
    ASSERT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.exits[worker], 7 << 8);
}

// The deadline has passed: another node may run the next generation already.
TEST_F(KeeperHelpersTest, NobodyIsTakenAfterTheDeadline) {
    start("echo it goes on >&1");
    bench.keeper.set_deadline(boot_now() - std::chrono::milliseconds{1}, std::chrono::seconds{10});
    adopt();
    ASSERT_TRUE(bench.answered(2));
    ASSERT_EQ(bench.errors.size(), 1U);
    ASSERT_TRUE(bench.run_until([&] { return bench.expired == 1; }));
    EXPECT_FALSE(lives(worker));
    EXPECT_FALSE(lives(bench.pids[0])) << "the helper goes with the deadline";
    EXPECT_EQ(told.read_all(), "\n");
}

// A number that is not the keeper's child may be anybody's.
TEST_F(KeeperHelpersTest, AStrangerIsNotTaken) {
    worker = ::getpid();
    adopt();
    ASSERT_TRUE(bench.answered(1));
    ASSERT_EQ(bench.errors.size(), 1U);
    EXPECT_EQ(bench.errors[0].code(), ErrorCode::unavailable);
}
