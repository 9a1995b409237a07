// Which worker failed first, and which failures are consequences (PROTOCOL.md, rule 14). Pure. When
// a worker dies, the collectives of its peers break within milliseconds, and the reports come in
// any order.
#include "rendezvous/rules/first_failure.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::test;
using namespace ddprun::rendezvous;

// The report about rank 4 comes first, but rank 0 died half a second earlier. The time of death
// decides. Otherwise the user would look for the bug at the wrong rank.
TEST(FirstFailure, IsTheEarliestHoweverLateItIsToldOf) {
    FirstFailure failure;
    EXPECT_FALSE(failure);
    failure.take("b", exited(4, 1), at(10));
    failure.take("a", exited(0, 7), at(9.5));
    failure.take("a", exited(1, 1), at(9.75));
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure.outcome().rank, 0);
    EXPECT_EQ(failure.at(), at(9.5));
    Ending ending;
    failure.tell(ending);
    EXPECT_EQ(ending.first_failure_node, "a");
    EXPECT_EQ(ending.consequences, 2);
    ASSERT_EQ(ending.told_consequences.size(), 2u);
    EXPECT_EQ(ending.told_consequences[0].outcome.rank, 1);
    EXPECT_EQ(ending.told_consequences[1].node, "b");
    EXPECT_EQ(ending.told_consequences[1].after, sec(0.5));
}

// A node repeats its report on each new connection. The repetitions differ a little in time.
TEST(FirstFailure, CountsARankOnce) {
    FirstFailure failure;
    for (int i = 0; i < 3; ++i) {
        failure.take("a", exited(0, 1), at(1));
        failure.take("a", exited(1, 1), at(2 + i));
    }
    Ending ending;
    failure.tell(ending);
    EXPECT_EQ(ending.consequences, 1);
}

// A thousand ranks fail at once. The report must still fit on a page: eight consequences, without
// their output, and the count of all.
TEST(FirstFailure, Rule14b_TellsAFewOfManyAndCountsAll) {
    FirstFailure failure;
    // The newest first, so that each report is earlier than all before it.
    for (int rank = 999; rank >= 0; --rank) {
        WorkerOutcome outcome = exited(rank, 1);
        outcome.tail = {"its last words"};
        failure.take("a", outcome, at(1 + rank));
    }
    Ending ending;
    failure.tell(ending);
    EXPECT_EQ(ending.first_failure->rank, 0);
    EXPECT_EQ(ending.first_failure->tail.size(), 1u);
    EXPECT_EQ(ending.consequences, 999);
    ASSERT_EQ(ending.told_consequences.size(), kConsequencesTold);
    EXPECT_EQ(ending.told_consequences[0].outcome.rank, 1);
    EXPECT_TRUE(ending.told_consequences[0].outcome.tail.empty());
}

// An Ack names the failure without output. The node's own report, with the last lines, comes later.
// It fills them in, and the time of the death stays.
TEST(FirstFailure, TakesLastLinesThatWereMissing) {
    FirstFailure failure;
    EXPECT_TRUE(failure.take("a", exited(0, 1), at(1)));
    WorkerOutcome whole = exited(0, 1);
    whole.tail = {"its last words"};
    EXPECT_FALSE(failure.take("a", whole, at(1.1))) << "no news, though";
    EXPECT_EQ(failure.outcome().tail.size(), 1u);
    EXPECT_EQ(failure.at(), at(1));
    EXPECT_EQ(failure.told(at(3))[0].outcome.age, sec(2));
}

// A lost node was the first cause, at 10. So even the earliest failure is a consequence.
TEST(FirstFailure, TellsAllAsConsequencesOfSomethingElse) {
    FirstFailure failure;
    failure.take("a", exited(0, 1), at(9));
    failure.take("b", exited(1, 1), at(12));
    Ending ending;
    failure.tell_as_consequences(ending, at(10));
    EXPECT_FALSE(ending.first_failure);
    EXPECT_EQ(ending.consequences, 2);
    EXPECT_EQ(ending.told_consequences[0].after, sec(0)) << "it was known a little earlier";
    EXPECT_EQ(ending.told_consequences[1].after, sec(2));
}
