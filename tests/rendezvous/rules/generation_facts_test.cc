#include "rendezvous/rules/generation_facts.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::test;
using namespace ddprun::rendezvous;
using testing::ElementsAre;

namespace {

const Generation g{4};

GenerationFacts of_a_node() {
    GenerationFacts facts(g);
    facts.made_progress();
    facts.saved(30);
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

// What a node says with its Join, another leader knows, on its own clock.
TEST(GenerationFacts, AreKnownToWhoHearsThem) {
    GenerationFacts heard(g);
    heard.hear(of_a_node().all(at(13)), at(1013));
    EXPECT_TRUE(heard.progressed());
    EXPECT_EQ(heard.snapshot(), 30);
    EXPECT_EQ(heard.failure().node(), "a");
    EXPECT_EQ(heard.failure().at(), at(1010));
    EXPECT_THAT(heard.failure().outcome().tail, ElementsAre("its last words"));
    EXPECT_EQ(heard.interrupted()->what.node, "b");
    EXPECT_EQ(heard.interrupted()->at, at(1011));
    EXPECT_THAT(heard.silent().value(), ElementsAre(node("b")));
    EXPECT_EQ(heard.stop(at(1013))->left, sec(19)) << "counted on while they travel";
    EXPECT_EQ(heard.led(), at(1009));
}

// Hearing is idempotent, in any order, and of another generation it changes nothing.
TEST(GenerationFacts, HearTheSameInAnyOrder) {
    GenerationFacts one(g), other(g), both(g), again(g);
    one.failed("a", exited(0, 1), at(10));
    one.interrupt({{}, "the lease has expired", false}, at(12));
    other.failed("b", exited(1, 1), at(9));
    other.interrupt({"c", "node c is lost", true}, at(11));
    for (const GenerationFacts* each : {&one, &other}) both.hear(each->all(at(13)), at(13));
    for (const GenerationFacts* each : {&other, &one, &other})
        again.hear(each->all(at(13)), at(13));
    EXPECT_EQ(both.all(at(14)), again.all(at(14)));
    EXPECT_EQ(both.failure().node(), "b") << "the earlier one";
    EXPECT_EQ(both.interrupted()->what.node, "c");
    const std::int64_t before = both.revision();
    both.hear(one.all(at(13)), at(13));
    EXPECT_EQ(both.revision(), before) << "nothing of it is news";
    both.hear(GenerationFacts(Generation{5}).all(at(14)), at(14));
    GenerationFacts newer(Generation{5});
    newer.made_progress();
    both.hear(newer.all(at(14)), at(14));
    EXPECT_FALSE(both.progressed());
}

// All nodes are told: so it is short. What a node knows better than the leader's word is kept.
TEST(GenerationFacts, AreToldBriefly) {
    GenerationFacts facts = of_a_node();
    facts.failed("c", exited(7, 1), at(10.5));
    const Facts brief = facts.brief(at(13));
    ASSERT_EQ(brief.failures.size(), 1u);
    EXPECT_EQ(brief.failures[0].node, "a");
    EXPECT_TRUE(brief.failures[0].outcome.tail.empty());
    EXPECT_FALSE(brief.stop) << "it has a message of its own";
    GenerationFacts heard(g);
    heard.hear(brief, at(13));
    heard.hear(of_a_node().all(at(13)), at(13));
    EXPECT_THAT(heard.failure().outcome().tail, ElementsAre("its last words"));
}

// What everybody has been told is not told again: the revision grows with what is news to them.
TEST(GenerationFacts, CountWhatIsNews) {
    GenerationFacts facts(g);
    EXPECT_TRUE(facts.made_progress());
    EXPECT_FALSE(facts.made_progress());
    facts.saved(3);
    facts.saved(2);
    facts.failed("a", exited(0, 1), at(10));
    facts.failed("b", exited(1, 1), at(11));
    EXPECT_EQ(facts.revision(), 3) << "a later failure is no news to all";
    facts.not_heard({});
    facts.not_heard({});
    EXPECT_EQ(facts.revision(), 4) << "that nobody is silent is news, once";
    facts.led_at(at(12));
    EXPECT_EQ(facts.revision(), 4);
}
