// Variables that differ between the workers.
#include "warm/rank_variables.h"

#include <gtest/gtest.h>

using namespace ddprun::agent::warm;

// Known ones count even on a node with one worker; what differs, or is missing somewhere, is found.
TEST(RankVariables, AreTheKnownOnesAndThoseThatDiffer) {
    const auto names = rank_variables({{"A=1", "HOME=/h", "MINE=0"},
                                       {"A=1", "HOME=/h", "MINE=1"},
                                       {"A=1", "HOME=/h", "MINE=0", "EXTRA="}});
    EXPECT_TRUE(names.contains("RANK"));
    EXPECT_TRUE(names.contains("CUDA_VISIBLE_DEVICES"));
    EXPECT_TRUE(names.contains("MINE"));
    EXPECT_TRUE(names.contains("EXTRA"));
    EXPECT_FALSE(names.contains("HOME"));
    EXPECT_FALSE(names.contains("A"));
    EXPECT_TRUE(rank_variables({}).contains("RANK"));
}

TEST(RankVariables, AreTakenOutOfAnEnvironment) {
    using Variables = std::vector<std::string>;
    EXPECT_EQ(without({"RANK=1", "RANKS=2", "A=RANK=1"}, {"RANK"}),
              (Variables{"RANKS=2", "A=RANK=1"}));
}
