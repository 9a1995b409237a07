// When a standstill is told, and what is asked before. Pure.
#include "rendezvous/parts/standstill_watch.h"

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

std::string name(int rank) { return "rank " + std::to_string(rank); }

// Asks and is answered.
std::optional<std::string> told(StandstillWatch& watch, Time now) {
    EXPECT_TRUE(watch.is_due(false));
    watch.ask(now);
    watch.asked({node("a")});
    watch.answered(node("a"), answer(1, "in evaluate (eval.py:88), called by main (train.py:20)"));
    EXPECT_TRUE(watch.is_complete(now));
    return watch.take(2, name);
}

TEST(StandstillWatch, IsToldAfterFifteenSeconds) {
    StandstillWatch watch;
    EXPECT_EQ(watch.judged(standstill(14)), std::nullopt);
    EXPECT_FALSE(watch.is_due(false));
    watch.judged(standstill(15));
    ASSERT_TRUE(watch.is_due(false));
    EXPECT_THAT(watch.ask(at(15)), ElementsAre(1, 0));
    watch.asked({node("a"), node("b")});
    EXPECT_FALSE(watch.is_due(false)) << "it is being asked";
    watch.answered(node("a"), answer(1, "in evaluate (eval.py:88), called by main (train.py:20)"));
    EXPECT_FALSE(watch.is_complete(at(16)));
    watch.answered(node("b"), answer(0, "in train (train.py:9)"));
    EXPECT_TRUE(watch.is_complete(at(16)));
    EXPECT_THAT(watch.take(2, name),
                Optional(HasSubstr("in train (train.py:9), for rank 1, which sleeps in evaluate "
                                   "(eval.py:88)")));
}

// What an operator gets to read is true: it goes as soon as somebody moves.
TEST(StandstillWatch, KeepsItsLineWhileItIsTrue) {
    StandstillWatch watch;
    watch.judged(standstill(15));
    EXPECT_EQ(watch.told(), "");
    const auto line = told(watch, at(15));
    EXPECT_EQ(watch.told(), *line);
    watch.judged(standstill(20));
    EXPECT_EQ(watch.told(), *line);
    watch.judged(std::nullopt);
    EXPECT_EQ(watch.told(), "");
}

// A node that does not answer: the line comes without its ranks' functions.
TEST(StandstillWatch, DoesNotWaitForEverForAnAnswer) {
    StandstillWatch watch;
    watch.judged(standstill(15));
    watch.ask(at(15));
    watch.asked({node("a")});
    EXPECT_FALSE(watch.is_complete(at(24)));
    EXPECT_TRUE(watch.is_complete(watch.asks_until()));
    EXPECT_THAT(watch.take(2, name), Optional(HasSubstr("for rank 1, which sleeps")));
}

// Again at 60 s, at 240 s, and not in between.
TEST(StandstillWatch, IsToldAgainWhenItHasLastedFourTimesAsLong) {
    StandstillWatch watch;
    watch.judged(standstill(15));
    EXPECT_TRUE(told(watch, at(15)));
    for (const double seconds : {16, 40, 59}) {
        watch.judged(standstill(seconds));
        EXPECT_FALSE(watch.is_due(false)) << seconds;
    }
    watch.judged(standstill(60));
    EXPECT_TRUE(told(watch, at(60)));
    watch.judged(standstill(200));
    EXPECT_FALSE(watch.is_due(false));
}

// Only what was told is taken back, once.
TEST(StandstillWatch, SaysThatTheJobGoesOn) {
    StandstillWatch watch;
    watch.judged(standstill(14));
    EXPECT_EQ(watch.judged(std::nullopt), std::nullopt) << "nobody was told of it";
    watch.judged(standstill(15));
    told(watch, at(15));
    watch.judged(standstill(20));
    EXPECT_THAT(watch.judged(std::nullopt),
                Optional(std::string("the job goes on; all its ranks had stood still for 20.0 s")));
    EXPECT_EQ(watch.judged(std::nullopt), std::nullopt);
}

// The rank that they waited for has come meanwhile, and another one has not.
TEST(StandstillWatch, SaysNothingOfWhatHasChanged) {
    StandstillWatch watch;
    watch.judged(standstill(15));
    watch.ask(at(15));
    watch.asked({node("a")});
    watch.judged(standstill(15, 2));
    EXPECT_FALSE(watch.asks());
    EXPECT_TRUE(watch.is_due(false)) << "the other one has lasted as long";
    watch.ask(at(16));
    watch.asked({node("a")});
    watch.judged(std::nullopt);
    EXPECT_FALSE(watch.asks());
}

// A rank that saves is seen to compute, then to wait for the disk, and so on. That is one standstill.
TEST(StandstillWatch, IsNotToldAgainForWhatARankDoes) {
    StandstillWatch watch;
    watch.judged(standstill(15));
    told(watch, at(15));
    for (const double seconds : {16, 18, 20}) {
        watch.judged(judge_standstill({{0, Doing::in_collective, sec(seconds), sec(1), 7},
                                       {1, Doing::hangs_in_kernel, sec(seconds), sec(1), 8}},
                                      2));
        EXPECT_FALSE(watch.is_due(false)) << seconds;
        EXPECT_EQ(watch.judged(standstill(seconds + 1)), std::nullopt);
        EXPECT_FALSE(watch.is_due(false)) << seconds;
    }
    watch.judged(standstill(60));
    EXPECT_TRUE(watch.is_due(false));
}

// With --hang-timeout a standstill that lasts is a hang. It is that of the rank outside.
TEST(StandstillWatch, IsAHangInTime) {
    StandstillWatch watch;
    watch.judged(standstill(34));
    told(watch, at(34));
    EXPECT_FALSE(watch.is_hung(limits(30)));
    EXPECT_FALSE(watch.is_due(watch.is_hung(limits(30))));
    watch.judged(standstill(35));
    EXPECT_FALSE(watch.is_hung(limits(0)));
    EXPECT_TRUE(watch.is_hung(limits(30)));
    ASSERT_TRUE(watch.is_due(watch.is_hung(limits(30)))) << "its ranks are asked once more";
    watch.ask(at(35));
    watch.asked({node("a")});
    watch.answered(node("a"), answer(1, "in evaluate (eval.py:88)"));
    const auto line = watch.take(2, name);
    ASSERT_TRUE(line);
    const WorkerOutcome outcome = watch.outcome(*line, name);
    EXPECT_EQ(outcome.rank, 1);
    EXPECT_TRUE(outcome.hung);
    EXPECT_THAT(outcome.stack, ElementsAre("rank 1:", "    in evaluate (eval.py:88)",
                                           "    thread 17", "rank 0: its node has not answered"));
}

// An evaluation of 50 s has ended once. The next one is no hang before 100 s, in the next
// generation, too. A stopped rank does not begin to go on by itself.
TEST(StandstillWatch, IsNoHangBeforeALongPauseHasPassed) {
    StandstillWatch watch;
    watch.judged(standstill(50));
    watch.judged(std::nullopt);
    watch.forget();
    watch.judged(standstill(99));
    EXPECT_FALSE(watch.is_hung(limits(30)));
    watch.judged(standstill(100));
    EXPECT_TRUE(watch.is_hung(limits(30)));
    watch.judged(judge_standstill(
        {{0, Doing::in_collective, sec(35), sec(1), 7}, {1, Doing::is_stopped, sec(35), sec(1), 8}},
        2));
    EXPECT_TRUE(watch.is_hung(limits(30)));
}

}  // namespace
}  // namespace ddprun::rendezvous
