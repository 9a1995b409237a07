// When ddprun asks its keeper whether it works, and when it takes it for frozen.
#include "keeper/keeper_watch.h"

#include <gtest/gtest.h>

using namespace ddprun;
using ddprun::agent::keeper::Pulse;
using ddprun::agent::keeper::Watch;
using Due = Watch::Due;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Time at(double seconds_passed) {
    return Time{
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1000 + seconds_passed))};
}

// A patience of 4 s: it is looked at 2 s after a question, and given up after 3 s.
struct Story {
    Watch watch{seconds{4}};
    Story() { watch.begin(at(0)); }
    // A keeper that stands still.
    Due look(double now) { return watch.look(at(now), Pulse{milliseconds{7}}); }
};

}  // namespace

TEST(KeeperWatch, AsksAgainAndAgain) {
    Story s;
    EXPECT_EQ(s.watch.next(), at(4));
    EXPECT_EQ(s.look(3.9), Due::nothing);
    EXPECT_EQ(s.look(4), Due::ask);
    s.watch.answered(at(4.1));
    EXPECT_EQ(s.watch.next(), at(8.1));
    EXPECT_EQ(s.look(8.1), Due::ask);
    // A late answer is one all the same.
    EXPECT_EQ(s.look(10.1), Due::nothing);
    s.watch.answered(at(11));
    EXPECT_EQ(s.look(14.9), Due::nothing);
    EXPECT_EQ(s.look(15), Due::ask);
}

TEST(KeeperWatch, NoAnswerMeansFrozen) {
    Story s;
    EXPECT_EQ(s.look(4), Due::ask);
    EXPECT_EQ(s.watch.next(), at(6));
    EXPECT_EQ(s.look(6), Due::nothing);
    EXPECT_EQ(s.watch.next(), at(7));
    EXPECT_EQ(s.look(7), Due::frozen);
    EXPECT_EQ(s.watch.silence(at(7)), seconds{3});
    // Once. The next keeper is watched from its own start.
    EXPECT_EQ(s.watch.next(), kNever);
    EXPECT_EQ(s.look(100), Due::nothing);
    s.watch.begin(at(100));
    EXPECT_EQ(s.look(104), Due::ask);
}

// Somebody waits for a start or a sweep: the question is not put off to the next regular one, and a
// frozen keeper is known after the patience. Quick work costs no question of its own.
TEST(KeeperWatch, WorkIsAskedForSoon) {
    Story s;
    EXPECT_TRUE(s.watch.work_asked(at(1)));
    EXPECT_EQ(s.watch.next(), at(2));
    // 64 workers are 64 requests and one question.
    EXPECT_FALSE(s.watch.work_asked(at(1.5)));
    EXPECT_EQ(s.look(2), Due::ask);
    EXPECT_FALSE(s.watch.work_asked(at(2.5)));
    EXPECT_EQ(s.look(4), Due::nothing);
    EXPECT_EQ(s.look(5), Due::frozen);
    EXPECT_FALSE(s.watch.work_asked(at(6)));
}

// The regular question comes before that of the work.
TEST(KeeperWatch, WorkPutsNoQuestionOff) {
    Story s;
    EXPECT_FALSE(s.watch.work_asked(at(3.5)));
    EXPECT_EQ(s.watch.next(), at(4));
}

// Gigabytes of shared memory are removed: there is no answer, but CPU time. This cannot go on for
// ever: a keeper that spins does its work no more than one that stands still.
TEST(KeeperWatch, SlowIsNotFrozenForAMinute) {
    Story s;
    Duration used = seconds{1};
    EXPECT_EQ(s.watch.look(at(4), Pulse{used}), Due::ask);
    double now = 6;
    while (s.watch.look(at(now), Pulse{used += milliseconds{1}}) != Due::frozen) {
        ASSERT_LT(now, 100);
        now = static_cast<double>((s.watch.next() - at(0)).count()) / 1e9;
    }
    EXPECT_EQ(now, 64);
}

// The host is loaded: the keeper would run, but gets no processor for seconds. Then it answers.
TEST(KeeperWatch, WaitingForAProcessorIsNotFrozen) {
    Story s;
    const Pulse starved{milliseconds{7}, true};
    EXPECT_EQ(s.watch.look(at(4), starved), Due::ask);
    for (const double now : {6, 7, 8, 9}) EXPECT_EQ(s.watch.look(at(now), starved), Due::nothing);
    s.watch.answered(at(9.5));
    EXPECT_EQ(s.look(13.5), Due::ask);
}

// ddprun was stopped for 10 s, by Ctrl-Z, a debugger or a busy host. The keeper may have stood
// still with it and has its time anew.
TEST(KeeperWatch, TimeInWhichDdprunItselfDidNotRunIsNotCounted) {
    for (const bool doubted : {false, true}) {
        Story s;
        EXPECT_EQ(s.look(4), Due::ask);
        if (doubted) {
            EXPECT_EQ(s.look(6), Due::nothing);
        }
        EXPECT_EQ(s.look(17), Due::nothing);
        EXPECT_EQ(s.watch.next(), at(19));
        EXPECT_EQ(s.look(19), Due::nothing);
        EXPECT_EQ(s.look(20), Due::frozen);
    }
}

TEST(KeeperWatch, OneThatHasGoneIsNotWatched) {
    Story s;
    s.watch.end();
    EXPECT_EQ(s.watch.next(), kNever);
    EXPECT_EQ(s.look(100), Due::nothing);
    EXPECT_FALSE(s.watch.work_asked(at(100)));
}
