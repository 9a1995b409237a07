// The time between two generations: when the leader counts nodes, and when it logs for which ones
// it waits. Pure. With ten thousand nodes a count at each event would be too expensive.
#include "rendezvous/parts/gathering.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

// One of three is here. Before two more events there cannot be three, so there is nothing to count.
TEST(Gathering, CountsNobodyBeforeEnoughHaveCome) {
    Gathering gathering(at(0));
    EXPECT_TRUE(gathering.may_be_enough());
    gathering.counted(at(1), 1, 3);
    EXPECT_EQ(gathering.since_min(), kNever);
    EXPECT_FALSE(gathering.may_be_enough());
    gathering.somebody_came();
    EXPECT_FALSE(gathering.may_be_enough());
    gathering.somebody_came();
    EXPECT_TRUE(gathering.may_be_enough());
    gathering.counted(at(2), 3, 3);
    // The minimum was reached at 2. The last call counts from there.
    gathering.counted(at(3), 4, 3);
    EXPECT_EQ(gathering.since_min(), at(2));
    gathering.counted(at(4), 2, 3);
    EXPECT_EQ(gathering.since_min(), kNever) << "one has left";
    gathering.begin(at(5));
    EXPECT_EQ(gathering.since(), at(5));
    EXPECT_TRUE(gathering.may_be_enough());
}

// Two members are absent. One proof (Gone) may settle both, so the next count comes at once.
TEST(Gathering, CountsAbsentMembersAgainWhenOneIsProvenGone) {
    Gathering gathering(at(0));
    gathering.counted_absent(2, Generation{4});
    gathering.somebody_came();
    EXPECT_FALSE(gathering.may_all_be_back());
    EXPECT_FALSE(gathering.all_are_back(Generation{4}));
    gathering.member_is_gone();
    EXPECT_TRUE(gathering.may_all_be_back());
}

// The leader then waits for their Joins. Counting all at each of these took a time that grew with
// the square of their number.
TEST(Gathering, CountsNoMembersAgainOnceAllAreBack) {
    Gathering gathering(at(0));
    gathering.counted_absent(0, Generation{4});
    gathering.somebody_came();
    EXPECT_TRUE(gathering.all_are_back(Generation{4}));
    EXPECT_FALSE(gathering.all_are_back(Generation{5}));
    gathering.begin(at(1));
    EXPECT_FALSE(gathering.all_are_back(Generation{4}));
}

// A user who watches the log sees after 5 s why nothing happens. News is logged without that wait.
// Each pause is twice the one before it, so an hour of waiting does not fill the log.
TEST(Gathering, SaysForWhomItWaitsAfter5sAndEverMoreRarely) {
    Gathering gathering(at(0));
    EXPECT_EQ(gathering.speaks_at(), at(5));
    gathering.spoke(at(5));
    EXPECT_EQ(gathering.speaks_at(), at(35));
    gathering.spoke(at(35));
    EXPECT_EQ(gathering.speaks_at(), at(95));
    gathering.speak_soon(at(7));
    EXPECT_EQ(gathering.speaks_at(), at(7));
    gathering.generation_ended(at(50));
    EXPECT_EQ(gathering.speaks_at(), at(55));
}

}  // namespace
}  // namespace ddprun::rendezvous
