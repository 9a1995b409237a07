// What each ledger entry says of the job's past: restarts, progress, blame (PROTOCOL.md, rules 17
// and 21). Pure. The next leader decides by it, so nothing may get lost between two leaders.
#include "rendezvous/parts/job_record.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

LedgerEntry of_two_hosts(std::int64_t generation) {
    LedgerEntry entry;
    entry.assignment = assignment(generation, {node("a"), node("b")});
    return entry;
}
// The generation ended because this node was lost, which counts as its host's fault.
GenerationFacts lost(std::int64_t generation, const std::string& name) {
    GenerationFacts facts(Generation{generation});
    facts.interrupt({name, "node " + name + " is lost", true}, at(1));
    return facts;
}

// One leader uses up a restart and writes the entry. The next leader reads it and goes on with the
// same count. A job whose leader is lost must not get a fresh budget.
TEST(JobRecord, Rule17m_PassesFromLeaderToLeader) {
    JobRecord one;
    one.began(of_two_hosts(0));
    EXPECT_TRUE(one.decide(exited(1, 1), Reach::met, limits(2, 2, 3)).restart);
    LedgerEntry entry = of_two_hosts(1);
    entry.assignment.restarts = one.restarts();
    const LedgerEntry before = of_two_hosts(0);
    GenerationFacts facts(Generation{0});
    facts.reached(Reach::met);
    one.write(entry, at(2), &before, one.blame(), facts);
    EXPECT_TRUE(entry.met);
    EXPECT_EQ(entry.assignment.restarts, 1);
    // The next leader knows nothing but the entry.
    JobRecord other;
    other.adopt(entry, false);
    EXPECT_EQ(other.restarts(), 1);
    LedgerEntry next = of_two_hosts(2);
    other.write(next, at(3), &entry, other.blame(), GenerationFacts(Generation{1}));
    EXPECT_TRUE(next.met) << "that of all generations before";
}

// Where the time went, and why restarts were made, goes on in the next entry, whoever writes it.
TEST(JobRecord, CountsTimeAndCauses) {
    JobRecord one(sec(1000), at(1));
    LedgerEntry first = of_two_hosts(0);
    one.write(first, at(3), nullptr, {}, GenerationFacts());
    EXPECT_EQ(first.time.begun, sec(1001));
    EXPECT_EQ(first.time.spent, (TimeSpent{.waiting = sec(2)}));
    one.began(first);
    const auto trains = [](Generation generation) {
        return Marks{generation, {{RestartPhase::started, {}}, {RestartPhase::progress, {}}}};
    };
    one.heard({"a", Incarnation{1}}, trains(Generation{0}), at(3));
    GenerationFacts facts(Generation{0});
    facts.saved(10, at(50));
    one.ended(at(60), at(61));
    one.next_because("rank 1 exited with 1", RestartCause::worker);
    LedgerEntry second = of_two_hosts(1);
    one.write(second, at(63), &first, {}, facts);
    // Nobody has said that its workers were gone: all but noticing counts as waiting for nodes.
    EXPECT_EQ(
        second.time.spent,
        (TimeSpent{.waiting = sec(4), .training = sec(47), .lost = sec(10), .restarting = sec(1)}));
    EXPECT_EQ(second.restart.totals.causes[0], 1);
    // The next leader's clock shows other numbers, and it has seen no snapshot.
    JobRecord other(sec(0), at(1050));
    other.adopt(second, false);
    LedgerEntry third = of_two_hosts(2);
    other.heard({"a", Incarnation{1}}, trains(Generation{1}), at(1063));
    other.ended(at(1073), at(1073));
    other.next_because("node a is lost");
    other.write(third, at(1073), &second, {}, GenerationFacts(Generation{1}));
    EXPECT_EQ(third.time.spent.lost, sec(20)) << "the job saves, and this generation has not";
    EXPECT_THAT(third.restart.totals.causes, ElementsAre(1, 0, 1, 0, 0, 0));
    LedgerEntry requeued = of_two_hosts(3);
    requeued.requeue = 1;
    other.write(requeued, at(1080), &third, {}, GenerationFacts(Generation{2}));
    EXPECT_EQ(requeued.restart.totals.causes[4], 1);
}

// b is lost in two generations. The second time it is blamed and the log says so, once.
TEST(JobRecord, BlamesTheHostThatEndedTwoGenerations) {
    JobRecord record;
    record.began(of_two_hosts(0));
    LedgerEntry entry = of_two_hosts(1);
    entry.blame = record.blame(of_two_hosts(0), lost(0, "b"), limits(1, 2));
    EXPECT_THAT(record.began(entry), IsEmpty()) << "once may be chance";
    LedgerEntry third = of_two_hosts(2);
    third.blame = record.blame(of_two_hosts(1), lost(1, "b"), limits(1, 2));
    EXPECT_THAT(third.blame.nodes, ElementsAre("b"));
    EXPECT_THAT(record.began(third),
                ElementsAre(testing::HasSubstr("b caused the end of generations")));
    LedgerEntry fourth = of_two_hosts(3);
    fourth.blame = third.blame;
    EXPECT_THAT(record.began(fourth), IsEmpty()) << "said once";
}

// A worker on a failed, and b was lost too. The generation ended because of the failure, so only a
// is a cause.
TEST(JobRecord, AWorkersFailureIsBlamedBeforeALoss) {
    JobRecord record;
    record.began(of_two_hosts(0));
    record.ended_by("a");
    const Blame blame = record.blame(of_two_hosts(0), lost(0, "b"), limits(1, 2));
    ASSERT_EQ(blame.causes.size(), 1u);
    EXPECT_EQ(blame.causes.front().node, "a");
    record.began(of_two_hosts(1));
    EXPECT_EQ(record.blame(of_two_hosts(1), GenerationFacts(Generation{1}), limits(1, 2)),
              record.blame())
        << "of the next generation nothing is known";
}

// There is no other host to take its place. With --blame=off nobody is blamed either.
TEST(JobRecord, BlamesNobodyWhereThereIsOneHost) {
    JobRecord record;
    LedgerEntry entry;
    entry.assignment = assignment(0, {node("a/0"), node("a/1")});
    EXPECT_THAT(record.blame(entry, lost(0, "a/0"), limits(1, 2)).causes, IsEmpty());
    Limits off = limits(1, 2);
    off.blame = false;
    EXPECT_THAT(record.blame(of_two_hosts(0), lost(0, "b"), off).causes, IsEmpty());
}

// A failure uses up one restart. A takeover of the same generation must not judge it again; the
// next generation has a failure of its own.
TEST(JobRecord, JudgesEachGenerationOnce) {
    JobRecord record;
    EXPECT_FALSE(record.is_judged());
    record.judged();
    EXPECT_TRUE(record.is_judged());
    record.adopt(of_two_hosts(0), true);
    EXPECT_TRUE(record.is_judged()) << "a takeover changes nothing";
    record.adopt(of_two_hosts(1), false);
    EXPECT_FALSE(record.is_judged());
}

}  // namespace
}  // namespace ddprun::rendezvous
