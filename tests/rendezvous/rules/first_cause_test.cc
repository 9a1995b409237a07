// What ended a generation: a worker's failure, or something before it (PROTOCOL.md, rule 15). Pure.
// When a host is lost, the workers of its peers fail first. If such a failure counted, a broken
// host would use up the restarts of the job.
#include "rendezvous/rules/first_cause.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::test;
using namespace ddprun::rendezvous;

namespace {

// The Beat period at a lease of 10 s.
constexpr Duration kBeat = std::chrono::milliseconds{500};

// Rank 2, on node c, has failed at 10.
GenerationFacts failed_at_10() {
    GenerationFacts facts(Generation{0});
    facts.failed("c", exited(2, 1), at(10));
    return facts;
}

// The sentence of the first cause; `absent` are the members that have not come back.
std::string cause(const GenerationFacts& facts, const std::vector<Absent>& absent) {
    const auto found = cause_before_failure(facts, absent, kBeat);
    return found ? found->what.sentence : "the failure";
}

}  // namespace

TEST(FirstCause, IsTheFailureWhereAllAreBack) {
    EXPECT_EQ(cause(failed_at_10(), {}), "the failure");
}

// b has not come back. It was heard before the failure, or within one Beat period after it, so its
// loss explains the failure. Heard later than that, it lived when the worker failed.
TEST(FirstCause, IsTheLossOfAMemberThatWasSilentSince) {
    const GenerationFacts facts = failed_at_10();
    EXPECT_EQ(cause(facts, {{node("b"), at(9.8)}}),
              "node b is lost: its last message came 0.2 s before rank 2 failed");
    EXPECT_EQ(cause(facts, {{node("b"), at(10.5)}}),
              "node b is lost: its last message came when rank 2 failed");
    EXPECT_EQ(cause(facts, {{node("b"), at(10.501)}}), "the failure");
    const auto found = cause_before_failure(facts, {{node("b"), at(9.8)}}, kBeat);
    EXPECT_EQ(found->what.node, "b");
    // The host is to blame, and the loss lies before the failure.
    EXPECT_TRUE(found->what.blame);
    EXPECT_EQ(found->at, at(9.8));
}

// The leader was lost as well, and this one has never heard b. The leader before had judged who was
// silent, and its word counts. If it was lost before it could judge, b counts as silent.
TEST(FirstCause, OfAMemberThatThisLeaderNeverHeardTheOneBeforeTells) {
    GenerationFacts facts = failed_at_10();
    EXPECT_EQ(cause(facts, {{node("b"), {}}}),
              "node b is lost: no message has come from it since rank 2 failed");
    // The leader before named d only. So b was alive at the failure.
    facts.not_heard({node("d")});
    EXPECT_EQ(cause(facts, {{node("b"), {}}}), "the failure");
    EXPECT_EQ(cause(facts, {{node("b"), {}}, {node("d"), {}}}),
              "node d is lost: no message has come from it since rank 2 failed");
}

// An interruption up to one period (0.5 s) after the failure still explains it, because a loss is
// noticed later than its effects. One at 10.6 came too late.
TEST(FirstCause, IsWhatInterruptedTheGenerationBefore) {
    GenerationFacts facts = failed_at_10();
    facts.interrupt({{}, "the lease has expired on node b", false}, at(10.6));
    EXPECT_EQ(cause(facts, {}), "the failure");
    facts.interrupt({{}, "the lease has expired on node a", false}, at(10.4));
    EXPECT_EQ(cause(facts, {}), "the lease has expired on node a");
}

// A living member may have sent a Beat just before the failure. Its next one comes a period later.
// So the leader judges after more than two periods.
TEST(FirstCause, Rule15d_SilenceIsKnownAfterTwoBeats) {
    EXPECT_GT(silence_is_known_at(failed_at_10(), kBeat), at(11));
    EXPECT_TRUE(silent_since_failure(failed_at_10(), {node("b"), at(10.5)}, kBeat));
    EXPECT_FALSE(silent_since_failure(failed_at_10(), {node("b"), at(10.6)}, kBeat));
}
