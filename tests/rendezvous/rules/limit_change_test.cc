// Which limits an operator may set (limit_change.h). Pure.
#include "rendezvous/rules/limit_change.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::HasSubstr;
using Change = LimitChange::What;

// A job with --nnodes=2:4 --max-restarts=3, of which one is used up; three nodes are here.
LimitChange decide(const OperatorLimits& asked) {
    static const Limits hold = limits(2, 4, 3);
    return decide_limits(asked, {.hold = hold, .here = 3, .restarts_used = 1});
}

// A later command line may have another MAX, which this MIN alone might not fit.
TEST(LimitChange, RecordsMinAndMaxTogether) {
    EXPECT_EQ(decide({.min_nodes = 3, .max_nodes = {}, .max_restarts = {}}).to,
              (OperatorLimits{3, 4, {}}));
    EXPECT_EQ(decide({.min_nodes = {}, .max_nodes = 9, .max_restarts = {}}).to,
              (OperatorLimits{2, 9, {}}));
    EXPECT_EQ(decide({.min_nodes = {}, .max_nodes = {}, .max_restarts = 5}).to,
              (OperatorLimits{{}, {}, 5}));
}

TEST(LimitChange, SaysWhatHoldsThen) {
    EXPECT_EQ(decide({1, 4, 5}).sentence, "1 to 4 nodes, 1 of 5 restarts used");
    EXPECT_EQ(decide({2, 2, {}}).sentence, "2 nodes, 1 of 3 restarts used");
    EXPECT_EQ(decide({2, 4, 3}).what, Change::holds_already);
    EXPECT_EQ(decide({2, 4, 3}).sentence,
              "these limits hold already: 2 to 4 nodes, 1 of 3 restarts used");
    EXPECT_EQ(decide({}).what, Change::holds_already);
}

TEST(LimitChange, RefusesWhatIsNoRange) {
    EXPECT_EQ(decide({.min_nodes = 0, .max_nodes = {}, .max_restarts = {}}).what, Change::refused);
    EXPECT_EQ(decide({.min_nodes = {}, .max_nodes = kMostNodes + 1, .max_restarts = {}}).what,
              Change::refused);
    EXPECT_EQ(decide({.min_nodes = {}, .max_nodes = 1, .max_restarts = {}}).sentence,
              "--min-nodes=2 is more than --max-nodes=1");
    EXPECT_EQ(decide({.min_nodes = {}, .max_nodes = {}, .max_restarts = -1}).what, Change::refused);
    EXPECT_EQ(decide({.min_nodes = {}, .max_nodes = {}, .max_restarts = kMostRestarts + 1}).what,
              Change::refused);
}

// Raised above the nodes that are here, MIN would end the job at the join timeout. Lowered, it
// makes nothing worse, however many are here.
TEST(LimitChange, RaisesMinOnlyToTheNodesThatAreHere) {
    EXPECT_EQ(decide({3, 4, {}}).what, Change::changes);
    EXPECT_EQ(decide({4, 4, {}}).what, Change::refused);
    const Limits hold = limits(4, 4, 3);
    const LimitsNow one_is_here{.hold = hold, .here = 1, .restarts_used = 0};
    EXPECT_EQ(decide_limits({2, 4, {}}, one_is_here).what, Change::changes);
    EXPECT_EQ(decide_limits({4, 5, {}}, one_is_here).what, Change::changes) << "MIN stays";
}

// An operator who has seen enough may say so.
TEST(LimitChange, ABudgetMayBeUsedUp) {
    const LimitChange change = decide({.min_nodes = {}, .max_nodes = {}, .max_restarts = 1});
    EXPECT_EQ(change.what, Change::changes);
    EXPECT_THAT(change.sentence, HasSubstr("the next failure of a worker ends the job"));
    EXPECT_EQ(decide({.min_nodes = {}, .max_nodes = {}, .max_restarts = 2}).sentence,
              "2 to 4 nodes, 1 of 2 restarts used");
}

// "auto" counts as three, but also restarts nothing that has never met. Three is another thing.
TEST(LimitChange, ANumberReplacesAuto) {
    const Limits hold = limits(2, 4, kAutoRestarts);
    const LimitsNow now{.hold = hold, .here = 3, .restarts_used = 0};
    EXPECT_EQ(decide_limits({{}, {}, 3}, now).what, Change::changes);
}

}  // namespace
}  // namespace ddprun::rendezvous
