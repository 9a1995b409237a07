// What nodes know about a generation that is in no ledger entry yet (PROTOCOL.md, rule 16). Pure.
// Clocks of two nodes need not agree, since only durations travel: in one test they differ by
// 1000 s.
#include "rendezvous/rules/generation_facts.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::test;
using namespace ddprun::rendezvous;
using testing::ElementsAre;

namespace {

// The number is not 0, so that no default fits by chance.
const Generation g{4};

// One of each kind of fact: progress, a snapshot, a failure with its output, a lost node, a silent
// member, a stop, and when the leader was heard.
GenerationFacts of_a_node() {
    GenerationFacts facts(g);
    facts.reached(Reach::progressed);
    facts.saved(30, at(4));
    facts.saving(sec(3));
    facts.asked({2, {.min_nodes = 1, .max_nodes = 2, .max_restarts = {}, .by = "alice"}});
    WorkerOutcome outcome = exited(0, 1);
    outcome.tail = {"its last words"};
    facts.failed("a", outcome, at(10));
    facts.interrupt({"b", "node b is lost", true}, at(11));
    facts.not_heard({node("b")});
    facts.stopping({g, 15, "scancel", StopCause::signal, sec(20), false}, at(12));
    facts.led_at(at(9));
    return facts;
}

}  // namespace

// The leader is lost. A node joins another one and says all that it knows. The new leader must then
// decide as the old one would have: with the same first failure, and without forgetting the stop.
TEST(GenerationFacts, AreKnownToWhoHearsThem) {
    GenerationFacts heard(g);
    // The facts are sent at 13 on one clock and arrive at 1013 on the other. All times move by
    // 1000 s.
    heard.hear(of_a_node().all(at(13)), at(1013));
    EXPECT_EQ(heard.reach(), Reach::progressed);
    EXPECT_EQ(heard.snapshot(), 30);
    EXPECT_EQ(heard.saved_at(), at(1004));
    EXPECT_EQ(heard.saving(), sec(3));
    EXPECT_EQ(heard.limits().number, 2);
    EXPECT_EQ(heard.limits().limits.max_nodes, 2);
    EXPECT_FALSE(heard.asked({1, {}})) << "the highest number counts";
    EXPECT_FALSE(heard.saving(sec(2))) << "sums only grow";
    EXPECT_EQ(heard.failure().node(), "a");
    EXPECT_EQ(heard.failure().at(), at(1010));
    EXPECT_THAT(heard.failure().outcome().tail, ElementsAre("its last words"));
    EXPECT_EQ(heard.interrupted()->what.node, "b");
    EXPECT_EQ(heard.interrupted()->at, at(1011));
    EXPECT_THAT(heard.silent().value(), ElementsAre(node("b")));
    // 20 s were left at 12, and 1 s passed until 13.
    EXPECT_EQ(heard.stop(at(1013))->left, sec(19)) << "counted on while they travel";
    EXPECT_EQ(heard.led(), at(1009));
}

// The Beat that tells of it comes later than it was; what is lost since then must not look less.
TEST(GenerationFacts, ASnapshotIsAsOldAsItsNodeSays) {
    GenerationFacts facts(g);
    EXPECT_TRUE(facts.saved(30, at(5)));
    EXPECT_FALSE(facts.saved(30, at(4)));
    EXPECT_EQ(facts.saved_at(), at(4));
    EXPECT_FALSE(facts.saved(30, at(6)));
    EXPECT_FALSE(facts.saved(30, kLongAgo)) << "a node that does not know when";
    EXPECT_EQ(facts.saved_at(), at(4));
}

// After the loss of a leader all nodes join anew and say the same facts, some twice. The order must
// not decide which failure counts as the first. Facts of another generation must not mix in, since
// restarts are counted per generation.
TEST(GenerationFacts, Rule16d_HearTheSameInAnyOrder) {
    GenerationFacts one(g), other(g), both(g), again(g);
    one.failed("a", exited(0, 1), at(10));
    one.interrupt({{}, "the lease has expired", false}, at(12));
    other.failed("b", exited(1, 1), at(9));
    other.interrupt({"c", "node c is lost", true}, at(11));
    for (const GenerationFacts* each : {&one, &other}) both.hear(each->all(at(13)), at(13));
    // The other order, and one of them twice.
    for (const GenerationFacts* each : {&other, &one, &other})
        again.hear(each->all(at(13)), at(13));
    EXPECT_EQ(both.all(at(14)), again.all(at(14)));
    EXPECT_EQ(both.failure().node(), "b") << "the earlier one";
    EXPECT_EQ(both.interrupted()->what.node, "c");
    const std::int64_t before = both.revision();
    both.hear(one.all(at(13)), at(13));
    EXPECT_EQ(both.revision(), before) << "nothing of it is news";
    both.hear(GenerationFacts(Generation{5}).all(at(14)), at(14));
    // Generation 5 made progress. That is no progress of generation 4.
    GenerationFacts newer(Generation{5});
    newer.reached(Reach::progressed);
    both.hear(newer.all(at(14)), at(14));
    EXPECT_EQ(both.reach(), Reach::start);
}

// An Ack goes to every node, so it holds only the first failure and no output. A node that knows
// the output itself keeps it.
TEST(GenerationFacts, Rule16c_AreToldBriefly) {
    GenerationFacts facts = of_a_node();
    facts.failed("c", exited(7, 1), at(10.5));
    const Facts brief = facts.brief(at(13));
    ASSERT_EQ(brief.failures.size(), 1u);
    EXPECT_EQ(brief.failures[0].node, "a");
    EXPECT_TRUE(brief.failures[0].outcome.tail.empty());
    EXPECT_FALSE(brief.stop) << "it has a message of its own";
    // The short version comes first, the whole one later: the last lines are filled in.
    GenerationFacts heard(g);
    heard.hear(brief, at(13));
    heard.hear(of_a_node().all(at(13)), at(13));
    EXPECT_THAT(heard.failure().outcome().tail, ElementsAre("its last words"));
}

// The revision says whether an Ack must carry the facts again. It grows only with news for all
// nodes. If it grew more often, each Ack of a large job would carry them.
TEST(GenerationFacts, CountWhatIsNews) {
    GenerationFacts facts(g);
    EXPECT_TRUE(facts.reached(Reach::progressed));
    EXPECT_FALSE(facts.reached(Reach::progressed));
    // Snapshot 2 is older than 3, so it is no news.
    facts.saved(3, at(1));
    facts.saved(2, at(2));
    facts.failed("a", exited(0, 1), at(10));
    facts.failed("b", exited(1, 1), at(11));
    EXPECT_EQ(facts.revision(), 3) << "a later failure is no news to all";
    facts.not_heard({});
    facts.not_heard({});
    EXPECT_EQ(facts.revision(), 4) << "that nobody is silent is news, once";
    // The short version does not hold this time.
    facts.led_at(at(12));
    EXPECT_EQ(facts.revision(), 4);
}

// After a takeover nodes say what they know before the leader has read the newest entry. Facts of
// generation 3 must not count for generation 4.
TEST(EarlyFacts, Rule16e_KeepOnlyTheNewestGenerationOfEachNode) {
    EarlyFacts early;
    early.hear(node("a"), {.generation = Generation{3}, .reach = Reach::progressed}, at(1));
    early.hear(node("a"), {.generation = Generation{4}}, at(2));
    early.hear(node("b"), {.generation = Generation{3}, .reach = Reach::progressed}, at(2));
    const auto all = early.take();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all.at(node("a")).generation(), Generation{4});
    EXPECT_EQ(all.at(node("a")).reach(), Reach::start);
    EXPECT_EQ(all.at(node("b")).reach(), Reach::progressed);
    EXPECT_TRUE(early.take().empty());
}
