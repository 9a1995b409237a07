// What each entry says of the past of the job.
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
GenerationFacts lost(std::int64_t generation, const std::string& name) {
    GenerationFacts facts(Generation{generation});
    facts.interrupt({name, "node " + name + " is lost", true}, at(1));
    return facts;
}

// What one leader writes is what the next one goes on from.
TEST(JobRecord, PassesFromLeaderToLeader) {
    JobRecord one;
    one.began(of_two_hosts(0));
    EXPECT_TRUE(one.decide(exited(1, 1), true, limits(2, 2, 3)).restart);
    LedgerEntry entry = of_two_hosts(1);
    entry.assignment.restarts = one.restarts();
    one.write(entry, at(2), false, one.blame(), true);
    EXPECT_TRUE(entry.progressed);
    EXPECT_EQ(entry.assignment.restarts, 1);
    JobRecord other;
    other.adopt(entry, false);
    EXPECT_EQ(other.restarts(), 1);
    LedgerEntry next = of_two_hosts(2);
    other.write(next, at(3), false, other.blame(), false);
    EXPECT_TRUE(next.progressed) << "that of all generations before";
}

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

TEST(JobRecord, BlamesNobodyWhereThereIsOneHost) {
    JobRecord record;
    LedgerEntry entry;
    entry.assignment = assignment(0, {node("a/0"), node("a/1")});
    EXPECT_THAT(record.blame(entry, lost(0, "a/0"), limits(1, 2)).causes, IsEmpty());
    Limits off = limits(1, 2);
    off.blame = false;
    EXPECT_THAT(record.blame(of_two_hosts(0), lost(0, "b"), off).causes, IsEmpty());
}

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
