// Whether a generation hangs, and whose workers are examined (PROTOCOL.md, rule 22). Pure. The
// lease is 10 s and the hang timeout 30 s, so a hang is due 35 s after the newest report.
#include "rendezvous/hangs/hang_watch.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;

Limits hangs_after_30s() {
    Limits l = limits(2, 2);
    l.hang_timeout = sec(30);
    return l;
}
// The node's workers have sent so many reports, the newest one `age` seconds ago.
Beat reported(std::int64_t reports, double age = 0) {
    Beat beat;
    beat.reports = reports;
    beat.reported = sec(age);
    return beat;
}
// Rank 0 on a is at step 5, rank 1 on b at step 3.
std::vector<NodeSteps> steps() {
    const std::vector<Member> both = members({node("a"), node("b")});
    return {{both[0], {{0, 5}}}, {both[1], {{1, 3}}}};
}
// A node's answer to Examine.
Report stack_of(int rank) {
    WorkerOutcome outcome;
    outcome.rank = rank;
    outcome.hung = true;
    outcome.stack = {"in read()"};
    return {.generation = Generation{0}, .outcomes = {outcome}};
}

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

// Each Beat repeats the newest report with its age. A report of 8 stays one of 8, also if it is
// heard at 20 again. Any node's new report starts the count anew.
TEST(HangWatch, CountsFromTheNewestReportAndNotFromItsRepetition) {
    HangWatch hang;
    EXPECT_FALSE(hang.counts()) << "who reports nothing never hangs";
    hang.heard(at(10), node("a"), reported(1, 2));
    EXPECT_TRUE(hang.counts());
    // The same report again, now a second younger by the node's account: it is no new one.
    hang.heard(at(20), node("a"), reported(1, 11));
    EXPECT_EQ(hang.looks_at(hangs_after_30s()), hangs_at(at(8), hangs_after_30s()));
    hang.heard(at(21), node("b"), reported(1));
    EXPECT_EQ(hang.looks_at(hangs_after_30s()), hangs_at(at(21), hangs_after_30s()));
    hang.forget();
    EXPECT_FALSE(hang.counts());
}

// With auto a pause of a minute is nothing new in a job that has had one of a minute. That is kept
// over restarts.
TEST(HangWatch, WithAutoItMustLastTwiceAsLongAsTheLongestPause) {
    Limits limits = hangs_after_30s();
    limits.hang_auto = true;
    HangWatch hang;
    hang.heard(at(0), node("a"), reported(1));
    EXPECT_EQ(hang.looks_at(limits), hangs_at(at(0), limits));
    hang.heard(at(60), node("a"), reported(2));
    EXPECT_EQ(hang.looks_at(limits), at(60 + 120));
    EXPECT_EQ(hang.looks_at(hangs_after_30s()), hangs_at(at(60), limits)) << "not without auto";
    hang.forget();
    hang.heard(at(500), node("b"), reported(1));
    EXPECT_EQ(hang.looks_at(limits), at(500 + 120));
}

// A leader that looks more than 3 s (0.3 L) too late has stood still itself. It has not handled the
// Beats with the reports, so it must not call the job hung.
TEST(HangWatch, ALeaderThatStoodStillItselfCountsAnew) {
    const Limits limits = hangs_after_30s();
    HangWatch hang;
    hang.heard(at(0), node("a"), reported(1));
    const Time due = hang.looks_at(limits);
    EXPECT_FALSE(hang.is_due(due - sec(0.1), limits));
    // is_due() changes the watch, so each of the two looks needs its own.
    HangWatch late = hang;
    EXPECT_TRUE(hang.is_due(due + sec(3), limits));
    EXPECT_FALSE(late.is_due(due + sec(3.1), limits));
    EXPECT_EQ(late.looks_at(limits), hangs_at(due + sec(3.1), limits));
}

// Both nodes are asked. b answers, a never does, and c was not asked. After 10 s (45) the hang is
// reported with what is known.
TEST(HangWatch, Rule22i_AsksTheNodesOfTheSlowestAndIsCompleteWhenAllHaveAnswered) {
    HangWatch hang;
    hang.heard(at(0), node("a"), reported(1));
    const auto asked = hang.examine(at(35), steps());
    ASSERT_EQ(asked.size(), 2u);
    EXPECT_THAT(asked.at(node("b")), ElementsAre(1));
    EXPECT_FALSE(hang.is_complete(at(36)));
    hang.answered(node("b"), stack_of(1));
    hang.answered(node("c"), stack_of(7));
    EXPECT_FALSE(hang.is_complete(at(44.9)));
    EXPECT_EQ(hang.examined_by(), at(45));
    EXPECT_TRUE(hang.is_complete(at(45))) << "a node that never answers is not waited for";
    const HangWatch::Hung hung = hang.take(at(45), hangs_after_30s(), 2, name_of);
    EXPECT_EQ(hung.node, "b");
    EXPECT_TRUE(hung.to_blame);
    EXPECT_EQ(hung.since, at(0));
    EXPECT_EQ(hung.outcome.rank, 1);
    EXPECT_TRUE(hung.outcome.hung);
    EXPECT_THAT(hung.outcome.stack,
                ElementsAre("rank 1 (local 0 on b), at step 3:", "    in read()",
                            "rank 0 (local 0 on a), at step 5: its node has not answered"));
    EXPECT_FALSE(hang.examines());
}

// All nodes say what their workers have recorded, also those without any of the slowest ranks.
TEST(HangWatch, SaysInWhichCallTheRanksDiffer) {
    HangWatch hang;
    hang.heard(at(0), node("a"), reported(1));
    std::vector<NodeSteps> all = steps();
    all.push_back({members({node("c")}).front(), {}});
    EXPECT_EQ(hang.examine(at(35), all).size(), 2u);
    Report barrier = stack_of(1), reduce = stack_of(0), last;
    barrier.outcomes.front().stack.push_back("NCCL: no rank is behind");
    barrier.recorded = {{{1}, "group 0 (nccl)", 4, 4, {"barrier"}, 4}};
    reduce.recorded = {{{0}, "group 0 (nccl)", 4, 4, {"all_reduce"}, 4}};
    last.recorded = {{{2}, "group 0 (nccl)", 4, 4, {"all_reduce"}, 4}};
    hang.answered(node("a"), reduce);
    hang.answered(node("b"), barrier);
    EXPECT_FALSE(hang.is_complete(at(36)));
    hang.answered(node("c"), last);
    ASSERT_TRUE(hang.is_complete(at(36)));
    EXPECT_THAT(hang.take(at(36), hangs_after_30s(), 3, name_of).outcome.sentence,
                testing::EndsWith("; as NCCL has it, no rank is behind; as PyTorch's flight recorders have it, call 4 of group 0 "
                                  "(nccl) is barrier on rank 1, and all_reduce on rank 0 and rank "
                                  "2"));
}

// A worker reports progress after all. The examination ends and no worker is stopped.
TEST(HangWatch, ANewReportEndsTheExamination) {
    HangWatch hang;
    hang.heard(at(0), node("a"), reported(1));
    hang.examine(at(35), steps());
    EXPECT_FALSE(hang.resumed());
    hang.heard(at(36), node("b"), reported(1));
    EXPECT_TRUE(hang.resumed());
    EXPECT_FALSE(hang.examines());
    EXPECT_FALSE(hang.resumed()) << "said once";
}

}  // namespace
}  // namespace ddprun::rendezvous
