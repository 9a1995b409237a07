// When a standstill is told, and what is asked before. Pure.
#include "rendezvous/hangs/standstill_watch.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

// Rank 0 waits in a collective for rank `odd`, for so many seconds.
std::optional<Standstill> standstill(double seconds, int odd = 1) {
    return judge_standstill({{0, Doing::in_collective, sec(seconds), sec(1), 7},
                             {odd, Doing::sleeps, sec(seconds + 1), sec(1), 8}},
                            2);
}

// Without --hang-timeout, and with one of 30 s: half a lease of 10 s is added to it.
Limits limits(double hang_timeout = 0) {
    Limits l = test::limits(1, 1);
    l.hang_timeout = sec(hang_timeout);
    return l;
}

Report answer(int rank, const std::string& line) {
    WorkerOutcome outcome;
    outcome.rank = rank;
    outcome.hung = true;
    outcome.stack = {line, "thread 17"};
    return {.generation = Generation{0}, .outcomes = {outcome}};
}

std::string spoken(int rank) { return "rank " + std::to_string(rank); }

// Asks and is answered.
std::optional<std::string> told(StandstillWatch& watch, Time now) {
    EXPECT_TRUE(watch.is_due(false));
    watch.ask(now);
    watch.asked({node("a")});
    watch.answered(node("a"), answer(1, "in evaluate (eval.py:88), called by main (train.py:20)"));
    EXPECT_TRUE(watch.is_complete(now));
    return watch.take(2, spoken);
}

// The time matters only for what has ended.
std::optional<std::string> judged(StandstillWatch& watch, const std::optional<Standstill>& found,
                                  double now = 0) {
    return watch.judged(at(now), found);
}

// The events of 1,024 nodes that stand still must not look at all of them each. Two nodes are
// looked at each time.
TEST(StandstillWatch, LooksLessOftenAtManyMembers) {
    StandstillWatch watch;
    for (const std::size_t members : {2U, 1024U}) {
        EXPECT_TRUE(watch.looks());
        watch.met(members);
        for (std::size_t event = 0; event < members / 8; ++event) EXPECT_FALSE(watch.looks());
    }
    EXPECT_TRUE(watch.looks());
    watch.met(1024);
    watch.forget();  // another generation
    EXPECT_TRUE(watch.looks());
}

TEST(StandstillWatch, Rule22n_IsToldAfterFifteenSeconds) {
    StandstillWatch watch;
    EXPECT_EQ(judged(watch, standstill(14)), std::nullopt);
    EXPECT_FALSE(watch.is_due(false));
    judged(watch, standstill(15));
    ASSERT_TRUE(watch.is_due(false));
    EXPECT_THAT(watch.ask(at(15)), ElementsAre(1, 0));
    watch.asked({node("a"), node("b")});
    EXPECT_FALSE(watch.is_due(false)) << "it is being asked";
    watch.answered(node("a"), answer(1, "in evaluate (eval.py:88), called by main (train.py:20)"));
    EXPECT_FALSE(watch.is_complete(at(16)));
    watch.answered(node("b"), answer(0, "in train (train.py:9)"));
    EXPECT_TRUE(watch.is_complete(at(16)));
    EXPECT_THAT(watch.take(2, spoken),
                Optional(HasSubstr("in train (train.py:9), for rank 1, which sleeps in evaluate "
                                   "(eval.py:88)")));
}

// What an operator gets to read is true: it goes as soon as somebody moves.
TEST(StandstillWatch, KeepsItsLineWhileItIsTrue) {
    StandstillWatch watch;
    judged(watch, standstill(15));
    EXPECT_EQ(watch.told(), "");
    const auto line = told(watch, at(15));
    EXPECT_EQ(watch.told(), *line);
    judged(watch, standstill(20));
    EXPECT_EQ(watch.told(), *line);
    judged(watch, std::nullopt);
    EXPECT_EQ(watch.told(), "");
}

// A node that does not answer: the line comes without its ranks' functions.
TEST(StandstillWatch, DoesNotWaitForEverForAnAnswer) {
    StandstillWatch watch;
    judged(watch, standstill(15));
    watch.ask(at(15));
    watch.asked({node("a")});
    EXPECT_FALSE(watch.is_complete(at(24)));
    EXPECT_TRUE(watch.is_complete(watch.asks_until()));
    EXPECT_THAT(watch.take(2, spoken), Optional(HasSubstr("for rank 1, which sleeps")));
}

// Again at 60 s, at 240 s, and not in between.
TEST(StandstillWatch, Rule22o_IsToldAgainWhenItHasLastedFourTimesAsLong) {
    StandstillWatch watch;
    judged(watch, standstill(15));
    EXPECT_TRUE(told(watch, at(15)));
    for (const double seconds : {16, 40, 59}) {
        judged(watch, standstill(seconds));
        EXPECT_FALSE(watch.is_due(false)) << seconds;
    }
    judged(watch, standstill(60));
    EXPECT_TRUE(told(watch, at(60)));
    judged(watch, standstill(200));
    EXPECT_FALSE(watch.is_due(false));
}

// Only what was told is taken back, once.
TEST(StandstillWatch, SaysThatTheJobGoesOn) {
    StandstillWatch watch;
    judged(watch, standstill(14), 14);
    EXPECT_EQ(judged(watch, std::nullopt, 15), std::nullopt) << "nobody was told of it";
    EXPECT_EQ(judged(watch, std::nullopt, 20), std::nullopt);
    judged(watch, standstill(15), 35);
    told(watch, at(35));
    judged(watch, standstill(20), 40);
    EXPECT_EQ(judged(watch, std::nullopt, 41), std::nullopt);
    EXPECT_EQ(judged(watch, std::nullopt, 45.9), std::nullopt);
    EXPECT_THAT(judged(watch, std::nullopt, 46),
                Optional(std::string("the job goes on; all its ranks had stood still for 20.0 s")));
    EXPECT_EQ(judged(watch, std::nullopt, 52), std::nullopt);
}

// All ranks stand still for a moment in each of its steps.
TEST(StandstillWatch, AJobWithSlowStepsGoesOn) {
    StandstillWatch watch;
    judged(watch, standstill(20), 20);
    told(watch, at(20));
    for (const double now : {21, 22, 23, 24, 25}) {
        EXPECT_EQ(judged(watch, standstill(0.4), now), std::nullopt) << now;
        EXPECT_EQ(watch.told(), "");
    }
    EXPECT_THAT(judged(watch, standstill(0.4), 26), Optional(HasSubstr("for 20.0 s")));
}

// One rank has come, and now all wait for the next.
TEST(StandstillWatch, OneThatMovesForAMomentIsNoJobThatGoesOn) {
    StandstillWatch watch;
    judged(watch, standstill(20), 20);
    told(watch, at(20));
    for (double now = 21; now < 40; ++now)
        EXPECT_EQ(judged(watch, standstill(now - 21, 2), now), std::nullopt) << now;
}

// Also where the second standstill ends before it is worth a line.
TEST(StandstillWatch, TakesBackWhatWasToldAlsoAfterAMomentOfMoving) {
    StandstillWatch watch;
    judged(watch, standstill(20), 20);
    told(watch, at(20));
    for (const double now : {21.0, 26.0, 30.0}) judged(watch, standstill(now - 21), now);
    EXPECT_EQ(judged(watch, std::nullopt, 31), std::nullopt);
    EXPECT_EQ(judged(watch, std::nullopt, 35.9), std::nullopt);
    EXPECT_THAT(judged(watch, std::nullopt, 36), Optional(HasSubstr("for 20.0 s")));
    EXPECT_EQ(judged(watch, std::nullopt, 42), std::nullopt);
}

// The others move, too, when a rank dies: they die of it. Nothing went on, and nothing is learnt.
TEST(StandstillWatch, OneThatEndsWithTheGenerationHasNotEndedByItself) {
    StandstillWatch watch;
    judged(watch, standstill(50), 50);
    told(watch, at(50));
    EXPECT_EQ(judged(watch, std::nullopt, 51), std::nullopt);
    watch.forget();
    EXPECT_EQ(judged(watch, std::nullopt, 60), std::nullopt);
    judged(watch, standstill(35), 100);
    EXPECT_TRUE(watch.is_hung(limits(30)));
}

// The rank that they waited for has come meanwhile, and another one has not.
TEST(StandstillWatch, SaysNothingOfWhatHasChanged) {
    StandstillWatch watch;
    judged(watch, standstill(15));
    watch.ask(at(15));
    watch.asked({node("a")});
    judged(watch, standstill(15, 2));
    EXPECT_FALSE(watch.asks());
    EXPECT_TRUE(watch.is_due(false)) << "the other one has lasted as long";
    watch.ask(at(16));
    watch.asked({node("a")});
    judged(watch, std::nullopt);
    EXPECT_FALSE(watch.asks());
}

// A rank that saves is seen to compute, then to wait for the disk, and so on. That is one
// standstill.
TEST(StandstillWatch, IsNotToldAgainForWhatARankDoes) {
    StandstillWatch watch;
    judged(watch, standstill(15));
    told(watch, at(15));
    for (const double seconds : {16, 18, 20}) {
        judged(watch, judge_standstill({{0, Doing::in_collective, sec(seconds), sec(1), 7},
                                        {1, Doing::hangs_in_kernel, sec(seconds), sec(1), 8}},
                                       2));
        EXPECT_FALSE(watch.is_due(false)) << seconds;
        EXPECT_EQ(judged(watch, standstill(seconds + 1)), std::nullopt);
        EXPECT_FALSE(watch.is_due(false)) << seconds;
    }
    judged(watch, standstill(60));
    EXPECT_TRUE(watch.is_due(false));
}

// With --hang-timeout a standstill that lasts is a hang. It is that of the rank outside.
TEST(StandstillWatch, IsAHangInTime) {
    StandstillWatch watch;
    judged(watch, standstill(34));
    told(watch, at(34));
    EXPECT_FALSE(watch.is_hung(limits(30)));
    EXPECT_FALSE(watch.is_due(watch.is_hung(limits(30))));
    judged(watch, standstill(35));
    EXPECT_FALSE(watch.is_hung(limits(0)));
    EXPECT_TRUE(watch.is_hung(limits(30)));
    ASSERT_TRUE(watch.is_due(watch.is_hung(limits(30)))) << "its ranks are asked once more";
    watch.ask(at(35));
    watch.asked({node("a")});
    watch.answered(node("a"), answer(1, "in evaluate (eval.py:88)"));
    const auto line = watch.take(2, spoken);
    ASSERT_TRUE(line);
    const WorkerOutcome outcome = watch.outcome(*line, spoken);
    EXPECT_EQ(outcome.rank, 1);
    EXPECT_TRUE(outcome.hung);
    EXPECT_THAT(outcome.stack, ElementsAre("rank 1:", "    in evaluate (eval.py:88)",
                                           "    thread 17", "rank 0: its node has not answered"));
}

// An evaluation of 50 s has ended once. The next one is no hang before 100 s, in the next
// generation, too. A stopped rank does not begin to go on by itself.
TEST(StandstillWatch, IsNoHangBeforeALongPauseHasPassed) {
    StandstillWatch watch;
    judged(watch, standstill(50), 50);
    judged(watch, std::nullopt, 51);
    judged(watch, std::nullopt, 56);
    watch.forget();
    judged(watch, standstill(99));
    EXPECT_FALSE(watch.is_hung(limits(30)));
    judged(watch, standstill(100));
    EXPECT_TRUE(watch.is_hung(limits(30)));
    judged(watch, judge_standstill({{0, Doing::in_collective, sec(35), sec(1), 7},
                                    {1, Doing::is_stopped, sec(35), sec(1), 8}},
                                   2));
    EXPECT_TRUE(watch.is_hung(limits(30)));
}

}  // namespace
}  // namespace ddprun::rendezvous
