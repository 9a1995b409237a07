// The rendezvous machine when all workers stand still. Scripts of two nodes, a (rank 0) and b (rank
// 1). The lease is 10 s.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

// Until a time, rank 0 waits in a collective, and rank 1 sleeps, since 2. Returns all that the
// Beats bring.
Lines all_stand_still(Script& s, double from, double until) {
    Lines all;
    const auto add = [&all](const Lines& lines) {
        all.insert(all.end(), lines.begin(), lines.end());
    };
    for (double now = from; now <= until; ++now) {
        add(s.stands(now, 1, {{1, Doing::in_collective, sec(now - 2), sec(1), 7}}));
        add(s.stands(now, 2, {{1, Doing::sleeps, sec(now - 2), sec(1), 8}}));
    }
    return all;
}

Report seen_standing(int rank, const std::string& where) {
    WorkerOutcome outcome;
    outcome.rank = rank;
    outcome.pid = 4711;
    outcome.hung = true;
    outcome.stack = {"in " + where};
    return {Generation{0}, {outcome}};
}

constexpr const char* kLine =
    "note: 1 rank has waited for 15.0 s in a collective, in train (train.py:9), for rank 1 (local "
    "0 "
    "on b), which sleeps in evaluate (eval.py:88)";
// Once for each job.
constexpr const char* kWhatNow =
    "note: ddpctl why and ddpctl stacks RANK show more of a job that has a ledger in a folder or "
    "etcd; --hang-timeout=SECONDS ends and restarts a job that stands still for so long";

}  // namespace

// After 15 s both nodes are asked, and one line says who waits for whom. The job goes on.
TEST(StandingStill, OneLineSaysWhoWaitsForWhom) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(all_stand_still(s, 2, 16), Not(Contains(HasSubstr("Examine"))));
    const Lines asked = all_stand_still(s, 17, 17);
    EXPECT_THAT(asked, Contains("1: Examine 0"));
    EXPECT_THAT(asked, Contains("2: Examine 1"));
    EXPECT_THAT(s.come(17.1, 1, seen_standing(0, "train (train.py:9)")), IsEmpty());
    EXPECT_THAT(
        s.come(17.2, 2, seen_standing(1, "evaluate (eval.py:88), called by main (train.py:20)")),
        ElementsAre(kLine, kWhatNow));
    all_stand_still(s, 18, 20);
    EXPECT_THAT(s.stands(21, 2, {}), Not(Contains(HasSubstr("note"))));
    EXPECT_THAT(s.stands(25, 1, {}), Not(Contains(HasSubstr("note"))));
    EXPECT_THAT(s.stands(26, 2, {}),
                Contains("note: the job goes on; all its ranks had stood still for 18.0 s"));
}

// The others get an error when a rank dies, and move.
TEST(StandingStill, AJobWhoseRankDiesDoesNotGoOn) {
    Script s(limits(2, 2));
    s.both_run();
    all_stand_still(s, 2, 17);
    s.come(17.1, 1, seen_standing(0, "train (train.py:9)"));
    EXPECT_THAT(s.come(17.2, 2, seen_standing(1, "evaluate (eval.py:88)")),
                Contains(HasSubstr("note")));
    EXPECT_THAT(s.stands(18, 1, {}), Not(Contains(HasSubstr("note"))));
    Lines all = s.fails(19, 1, 0, exited(0, 1));
    for (double now = 20; now < 40; ++now)
        for (const std::string& line : s.stands(now, 1, {})) all.push_back(line);
    EXPECT_THAT(all, Contains(HasSubstr("generation 0 ends")));
    EXPECT_THAT(all, Not(Contains(HasSubstr("goes on"))));
}

// What stands still is what the node said before its link broke, and says again.
TEST(StandingStill, ALinkThatIsMadeAnewMovesNobody) {
    Script s(limits(2, 2));
    s.both_run();
    all_stand_still(s, 2, 17);
    s.come(17.1, 1, seen_standing(0, "train (train.py:9)"));
    EXPECT_THAT(s.come(17.2, 2, seen_standing(1, "evaluate (eval.py:88)")),
                Contains(HasSubstr("note")));
    Lines all = s.step(18, ConnectionLost{Session{2}});
    const auto add = [&all](const Lines& lines) {
        all.insert(all.end(), lines.begin(), lines.end());
    };
    for (double now = 18; now < 40; ++now) {
        add(s.stands(now, 1, {{1, Doing::in_collective, sec(now - 2), sec(1), 7}}));
        if (now == 20) add(s.joins_again(now, 3, 2, node("b")));
        if (now >= 20) add(s.stands(now, 3, {{1, Doing::sleeps, sec(now - 2), sec(1), 8}}));
    }
    EXPECT_THAT(all, Not(Contains(HasSubstr("note: "))));
}

// An answer may have only what was recorded.
TEST(StandingStill, Rule22p_TheCallsOfAllNodesAreCompared) {
    Script s(limits(2, 2));
    s.both_run();
    all_stand_still(s, 2, 17);
    Report first = seen_standing(0, "train (train.py:9)"), second = {Generation{0}, {}};
    first.recorded = {{{0}, "group 0 (gloo)", 4, 4, {"all_reduce"}, 4}};
    second.recorded = {{{1}, "group 0 (gloo)", 3, 3, {"all_reduce"}, 0}};
    EXPECT_THAT(s.come(17.1, 1, first), IsEmpty());
    EXPECT_THAT(s.come(17.2, 2, second),
                ElementsAre(HasSubstr("which sleeps; as PyTorch's flight recorders have it, rank 1 "
                                      "(local 0 on b) has not made call 4 of group 0 (gloo), "
                                      "all_reduce, but rank 0 (local 0 on a) has"),
                            kWhatNow));
}

// A node tells it below the functions of one of the workers that are asked for.
TEST(StandingStill, TheLineSaysWhatNcclHas) {
    Script s(limits(2, 2));
    s.both_run();
    all_stand_still(s, 2, 17);
    Report first = seen_standing(0, "train (train.py:9)");
    first.outcomes.front().stack.push_back("NCCL: rank 1 has launched 640 AllReduce operations");
    EXPECT_THAT(s.come(17.1, 1, first), IsEmpty());
    EXPECT_THAT(s.come(17.2, 2, seen_standing(1, "evaluate (eval.py:88)")),
                ElementsAre(HasSubstr("which sleeps in evaluate (eval.py:88); as NCCL has it, rank "
                                      "1 has launched 640 AllReduce operations"),
                            kWhatNow));
}

// A node that does not answer is not waited for longer than 10 s.
TEST(StandingStill, ANodeMayNotAnswer) {
    Script s(limits(2, 2));
    s.both_run();
    all_stand_still(s, 2, 17);
    s.come(17.1, 2, seen_standing(1, "evaluate (eval.py:88)"));
    EXPECT_THAT(all_stand_still(s, 18, 26), Not(Contains(HasSubstr("note"))));
    EXPECT_THAT(all_stand_still(s, 27, 27),
                Contains(HasSubstr("in a collective for rank 1 (local 0 on b)")));
}

// With --hang-timeout the generation ends, although the program reports nothing. The rank outside
// has caused it.
TEST(StandingStill, Rule22g_EndsTheGenerationAfterTheHangTimeout) {
    Limits hasty = limits(2, 2, 0);
    hasty.hang_timeout = sec(5);
    Script s(hasty);
    s.both_run();
    all_stand_still(s, 2, 12);  // 5 s and half a lease
    s.come(12.1, 1, seen_standing(0, "train (train.py:9)"));
    EXPECT_THAT(s.come(12.2, 2, seen_standing(1, "evaluate (eval.py:88)")),
                Contains(HasSubstr("which sleeps in evaluate (eval.py:88) (--hang-timeout 5.0 s); "
                                   "generation 0 ends")));
    s.vows(13, 1, 0);
    s.vows(13, 2, 0);
    const Ending end = *s.creating().end();
    EXPECT_EQ(end.code, kHungCode);
    EXPECT_EQ(end.first_failure->rank, 1);
    EXPECT_EQ(end.first_failure_node, "b");
}

// A program that reports its steps is judged by them alone.
TEST(StandingStill, IsNoHangForWhoReportsSteps) {
    Limits patient = limits(2, 2, 0);
    patient.hang_timeout = sec(20);
    Script s(patient);
    s.both_run();
    Lines all;
    for (int now = 2; now <= 60; ++now) {
        s.progresses(now, 1, {{0, now}});
        for (const std::string& line : all_stand_still(s, now, now)) all.push_back(line);
        if (now != 17) continue;
        s.come(17.1, 1, seen_standing(0, "x (x.py:1)"));
        for (const std::string& line : s.come(17.2, 2, seen_standing(1, "y (y.py:1)")))
            all.push_back(line);
    }
    EXPECT_THAT(all, Contains(HasSubstr("which sleeps in y (y.py:1)")));
    EXPECT_THAT(all, Not(Contains(HasSubstr("generation 0 ends"))));
}

// Each node tells the pace of its workers. A rank that makes the other wait for three minutes is
// told once, also if the job has stood still meanwhile.
TEST(StandingStill, OneLineNamesARankThatIsSlow) {
    Script s(limits(2, 2));
    s.both_run();
    Lines all;
    for (double now = 2; now < 200; ++now) {
        for (const int session : {1, 2})
            for (const std::string& line : s.goes(now, session, {.outside = 60 * session - 30}))
                all.push_back(line);
        if (now == 60) {
            s.stands(60.5, 1, {{1, Doing::in_collective, sec(5), sec(1), 7}});
            s.stands(60.5, 2, {{1, Doing::computes, sec(6), sec(1), 7}});
            s.stands(60.6, 1, {});
            s.stands(60.6, 2, {});
        }
    }
    EXPECT_EQ(std::ranges::count_if(
                  all, [](const std::string& line) { return line.starts_with("note: "); }),
              1);
    EXPECT_THAT(all, Contains(HasSubstr("rank 1 (local 0 on b) is slow, not stuck: it has been "
                                        "outside of collectives 90 % of the time, the others 30 "
                                        "%, so it takes 3.0 times as long")));
}
