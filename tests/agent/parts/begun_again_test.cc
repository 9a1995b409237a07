// Whether a restarted training has resumed anything, from the steps that rank 0 reports.
#include "agent/parts/begun_again.h"

#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

constexpr Generation g0{0}, g1{1}, g2{2};

TEST(BegunAgain, WarnsOnceWhereTheFirstStepComesAgain) {
    BegunAgain steps;
    EXPECT_FALSE(steps.reported(g0, 1, 3, -1));
    EXPECT_FALSE(steps.reported(g0, 4, 38, -1));
    EXPECT_EQ(steps.reported(g1, 1, 2, -1),
              "the training has begun again at step 1, though it had reached step 38 before the "
              "restart: nothing was resumed (no snapshot was reported)");
    EXPECT_FALSE(steps.reported(g1, 3, 3, -1)) << "once in a generation";
    EXPECT_TRUE(steps.reported(g2, 1, 1, -1));
}

TEST(BegunAgain, NamesTheSnapshotThatWasNotTaken) {
    BegunAgain steps;
    steps.reported(g0, 0, 31, 30);
    EXPECT_EQ(steps.reported(g1, 0, 0, 0),
              "the training has begun again at step 0, though it had reached step 31 before the "
              "restart: nothing was resumed, though a snapshot of step 30 was reported; make the "
              "program look for its newest one at the start");
}

// The first line of a resumed program may name its snapshot and no step.
TEST(BegunAgain, SaysNothingWhereTheTrainingGoesOn) {
    BegunAgain steps;
    steps.reported(g0, 1, 38, 30);
    EXPECT_FALSE(steps.reported(g1, -1, -1, 30));
    EXPECT_FALSE(steps.reported(g1, 31, 32, 30));
    EXPECT_FALSE(steps.reported(g2, 2, 2, 30)) << "an earlier snapshot was taken";
}

// The restart came before anything was done.
TEST(BegunAgain, SaysNothingWhereNothingWasLost) {
    BegunAgain steps;
    steps.reported(g0, 1, 1, -1);
    EXPECT_FALSE(steps.reported(g1, 1, 1, -1));
}

}  // namespace
}  // namespace ddprun::agent
