// The learning rate at a position of the training. Pure.
#include "trainer/training/schedule.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::DoubleNear;

// Eight times the batch has eight times the rate (Goyal et al. 2017), reached in a straight line
// from the single rate. An elastic job needs that: with more nodes its batch grows.
TEST(Schedule, ScalesAndWarmsUp) {
    const Schedule schedule{0.1, 256, 100, 0, 0};
    EXPECT_THAT(scaled_rate(schedule, 2048), DoubleNear(0.8, 1e-12));
    EXPECT_THAT(rate_at(schedule, 0, 2048), DoubleNear(0.1, 1e-12));
    EXPECT_THAT(rate_at(schedule, 50, 2048), DoubleNear(0.45, 1e-12));
    EXPECT_THAT(rate_at(schedule, 100, 2048), DoubleNear(0.8, 1e-12));
    EXPECT_THAT(rate_at(schedule, 1e9, 2048), DoubleNear(0.8, 1e-12));
    // A smaller batch than the reference's is not warmed down.
    EXPECT_THAT(rate_at(schedule, 0, 64), DoubleNear(0.025, 1e-12));
}

// Without scaling there is no single rate to begin with, so the warm-up begins at 0.
TEST(Schedule, WarmsUpFromZeroWhenUnscaled) {
    const Schedule schedule{0.2, 0, 10, 0, 0};
    EXPECT_EQ(rate_at(schedule, 0, 512), 0);
    EXPECT_THAT(rate_at(schedule, 5, 512), DoubleNear(0.1, 1e-12));
}

// Half a cosine from the peak (1.0) to the final rate (0.2), which then stays. Half-way it is the
// mean of both, and it never rises.
TEST(Schedule, FallsAsACosine) {
    const Schedule schedule{1.0, 0, 10, 110, 0.2};
    EXPECT_THAT(rate_at(schedule, 10, 1), DoubleNear(1.0, 1e-12));
    EXPECT_THAT(rate_at(schedule, 60, 1), DoubleNear(0.6, 1e-12));
    EXPECT_THAT(rate_at(schedule, 110, 1), DoubleNear(0.2, 1e-12));
    EXPECT_THAT(rate_at(schedule, 1000, 1), DoubleNear(0.2, 1e-12));
    for (int at = 10; at < 110; ++at)
        EXPECT_GE(rate_at(schedule, at, 1), rate_at(schedule, at + 1, 1));
}

}  // namespace
}  // namespace ddprun::trainer
