#include "rendezvous/rules/first_cause.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::test;
using namespace ddprun::rendezvous;

namespace {

constexpr Duration kBeat = std::chrono::milliseconds{500};

// Rank 2 has failed at 10.
GenerationFacts failed_at_10() {
    GenerationFacts facts(Generation{0});
    facts.failed("c", exited(2, 1), at(10));
    return facts;
}

std::string cause(const GenerationFacts& facts, const std::vector<Absent>& absent) {
    const auto found = cause_before_failure(facts, absent, kBeat);
    return found ? found->what.sentence : "the failure";
}

}  // namespace

TEST(FirstCause, IsTheFailureWhereAllAreBack) {
    EXPECT_EQ(cause(failed_at_10(), {}), "the failure");
}

// Heard before the failure, or within a beat after it, and not back: its peers failed because of it.
TEST(FirstCause, IsTheLossOfAMemberThatWasSilentSince) {
    const GenerationFacts facts = failed_at_10();
    EXPECT_EQ(cause(facts, {{node("b"), at(9.8)}}),
              "node b is lost: its last message came 0.2 s before rank 2 failed");
    EXPECT_EQ(cause(facts, {{node("b"), at(10.5)}}),
              "node b is lost: its last message came when rank 2 failed");
    EXPECT_EQ(cause(facts, {{node("b"), at(10.501)}}), "the failure");
    const auto found = cause_before_failure(facts, {{node("b"), at(9.8)}}, kBeat);
    EXPECT_EQ(found->what.node, "b");
    EXPECT_TRUE(found->what.blame);
    EXPECT_EQ(found->at, at(9.8));
}

// It was told who had been silent, and that one was not; or nobody lived to tell.
TEST(FirstCause, OfAMemberThatThisLeaderNeverHeardTheOneBeforeTells) {
    GenerationFacts facts = failed_at_10();
    EXPECT_EQ(cause(facts, {{node("b"), {}}}),
              "node b is lost: no message has come from it since rank 2 failed");
    facts.not_heard({node("d")});
    EXPECT_EQ(cause(facts, {{node("b"), {}}}), "the failure");
    EXPECT_EQ(cause(facts, {{node("b"), {}}, {node("d"), {}}}),
              "node d is lost: no message has come from it since rank 2 failed");
}

// What ended the generation before the failure is its cause; what came later is not.
TEST(FirstCause, IsWhatInterruptedTheGenerationBefore) {
    GenerationFacts facts = failed_at_10();
    facts.interrupt({{}, "the lease has expired on node b", false}, at(10.6));
    EXPECT_EQ(cause(facts, {}), "the failure");
    facts.interrupt({{}, "the lease has expired on node a", false}, at(10.4));
    EXPECT_EQ(cause(facts, {}), "the lease has expired on node a");
}

// All that live have sent a Beat by then, also one that had just sent one when the worker failed.
TEST(FirstCause, SilenceIsKnownAfterTwoBeats) {
    EXPECT_GT(silence_is_known_at(failed_at_10(), kBeat), at(11));
    EXPECT_TRUE(silent_since_failure(failed_at_10(), {node("b"), at(10.5)}, kBeat));
    EXPECT_FALSE(silent_since_failure(failed_at_10(), {node("b"), at(10.6)}, kBeat));
}
