// What workers that have succeeded have left running, for example an upload: it gets the time that
// the user gives, then SIGTERM, then SIGKILL.
#include <csignal>
#include <optional>

#include "tests/keeper/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct KeeperPatienceTest : testing::Test {
    Bench bench;
    Pipe alive;  // ends with the last process
    Pipe said;   // what the processes say
    std::optional<LeftRunning> left;

    // A worker starts what the script says, and succeeds; with `up` when that has said "up".
    void leaves(const std::string& script, const std::string& up = "") {
        Pipe go;
        WorkerStart start = shell(script + "\nread line <&9\nexit 0");
        start.stdout_fd = alive.in.get();
        start.extra = {{8, said.in.get()}, {9, go.out.get()}};
        bench.spawn(start);
        ASSERT_TRUE(bench.answered(1));
        alive.in.reset();
        said.in.reset();
        for (std::size_t i = 0; i < up.size(); ++i) ASSERT_TRUE(said.read_byte());
        go.in.reset();
        ASSERT_TRUE(bench.exited(1));
        EXPECT_EQ(bench.exits.begin()->second, 0);
    }
    void sweep(const Patience& patience) {
        bench.keeper.sweep(patience, [&](const LeftRunning& found) { left = found; });
    }
    bool swept() {
        return bench.run_until([&] { return left.has_value(); });
    }
};

constexpr const char* kUp = "up\n";
// Answers SIGTERM after a moment, as a program that has something to write.
constexpr const char* kObeys =
    "setsid sh -c 'trap \"sleep 0.05; echo flushed >&8; exit\" TERM; echo up >&8; "
    "while :; do sleep 0.01; done' 9<&- &";
constexpr const char* kIgnores =
    "setsid sh -c 'trap \"\" TERM; echo up >&8; while :; do sleep 300; done' 9<&- &";

// Without a wait it still has time to end in good order, and it is counted.
TEST_F(KeeperPatienceTest, GetsSigtermAndIsCounted) {
    leaves(kObeys, kUp);
    sweep({.to_leave = seconds{60}});
    ASSERT_TRUE(swept());
    EXPECT_GE(left->count, 1);
    EXPECT_EQ(left->killed, 0);
    EXPECT_TRUE(alive.ended());
    EXPECT_EQ(said.read_all(), "flushed\n");
}

// One ends by itself a moment later, as those of a data loader do, and is not counted.
TEST_F(KeeperPatienceTest, WhatEndsByItselfIsNotCounted) {
    leaves("setsid sleep 0.03 & setsid sleep 300 &");
    sweep({.to_leave = seconds{60}});
    ASSERT_TRUE(swept());
    EXPECT_EQ(left->count, 1);
    EXPECT_EQ(left->first.name, "sleep");
    EXPECT_GT(left->first.pid, 0);
    EXPECT_TRUE(alive.ended());
}

TEST_F(KeeperPatienceTest, IgnoringSigtermIsKilledAfterTheGrace) {
    leaves(kIgnores, kUp);
    sweep({.to_leave = milliseconds{200}});
    ASSERT_TRUE(swept());
    EXPECT_GE(left->count, 1);
    EXPECT_GE(left->killed, 1);
    EXPECT_TRUE(alive.ended());
}

TEST_F(KeeperPatienceTest, EndingWithinTheWaitGetsNoSignal) {
    leaves("setsid sh -c 'sleep 0.5; echo uploaded >&8' &");
    sweep({.wait = seconds{60}, .to_leave = seconds{60}});
    ASSERT_TRUE(swept());
    EXPECT_EQ(left->count, 0);
    EXPECT_EQ(said.read_all(), "uploaded\n");
}

// A second sweep without patience ends the wait.
TEST_F(KeeperPatienceTest, AnotherSweepKillsImmediately) {
    leaves(kIgnores, kUp);
    sweep({.wait = seconds{1000}, .to_leave = seconds{1000}});
    bool killed = false;
    bench.keeper.sweep({}, [&](const LeftRunning&) { killed = true; });
    ASSERT_TRUE(bench.run_until([&] { return killed && left; }));
    EXPECT_TRUE(alive.ended());
}

// The wait ends with a stop; what is left still gets SIGTERM first.
TEST_F(KeeperPatienceTest, HurryEndsTheWaitWithSigterm) {
    leaves(kObeys, kUp);
    sweep({.wait = seconds{1000}, .to_leave = seconds{1000}});
    bench.keeper.hurry(seconds{60});
    ASSERT_TRUE(swept());
    EXPECT_GE(left->count, 1);
    EXPECT_EQ(said.read_all(), "flushed\n");
}

TEST_F(KeeperPatienceTest, TheDeadlineEndsTheWait) {
    leaves("setsid sleep 300 &");
    bench.keeper.set_deadline(boot_now() + milliseconds{300}, seconds{10});
    sweep({.wait = seconds{1000}, .to_leave = seconds{1000}});
    ASSERT_TRUE(bench.run_until([&] { return bench.expired == 1; }));
    EXPECT_TRUE(alive.ended());
}

// As torchrun does: it runs on after the end of the keeper.
TEST_F(KeeperPatienceTest, LeftAloneRunsOn) {
    leaves("setsid sleep 300 8>&- 9<&- & echo $! >&8");
    sweep({.leave_alone = true});
    ASSERT_TRUE(swept());
    EXPECT_EQ(left->count, 0);
    const pid_t helper = std::atoi(said.read_all().c_str());
    ASSERT_GT(helper, 0);
    ASSERT_TRUE(bench.keeper.shutdown());
    EXPECT_FALSE(alive.ended());
    ::kill(helper, SIGKILL);
    alive.read_all();
}

// But nothing of a generation is left beside the next one.
TEST_F(KeeperPatienceTest, LeftAloneIsKilledByALaterSweep) {
    leaves("setsid sleep 300 &");
    sweep({.leave_alone = true});
    ASSERT_TRUE(swept());
    left.reset();
    bench.keeper.sweep({}, [&](const LeftRunning& found) { left = found; });
    ASSERT_TRUE(swept());
    EXPECT_TRUE(alive.ended());
}

TEST(LeftRunning, Sentences) {
    EXPECT_EQ(left_sentence({3, {4711, "tail"}}),
              "process 4711 (tail) and 2 more, which the workers had left running, were killed");
    EXPECT_EQ(left_behind_sentence({1, {4711, "tail"}}, {}),
              "process 4711 (tail), which the workers had left running, was ended; "
              "--wait-for-helpers=SECONDS waits for such processes");
    EXPECT_EQ(
        left_behind_sentence({3, {4711, "tail"}, 2}, {.to_leave = seconds{30}}),
        "process 4711 (tail) and 2 more, which the workers had left running, were ended, 2 of "
        "them by SIGKILL 30.0 s after SIGTERM; --wait-for-helpers=SECONDS waits for such "
        "processes");
    EXPECT_EQ(left_behind_sentence({1, {4711, "tail"}}, {.wait = seconds{60}}),
              "process 4711 (tail), which the workers had left running, was ended "
              "(--wait-for-helpers=60.0 s)");
    EXPECT_EQ(
        waits_sentence({2, {4711, "tail"}}, {.wait = seconds{60}}),
        "the workers have succeeded; waiting up to 60.0 s for process 4711 (tail) and 1 more, "
        "which they have left running (--wait-for-helpers)");
}

}  // namespace
