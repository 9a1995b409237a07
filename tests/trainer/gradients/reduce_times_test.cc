// How much communication was hidden behind computation, from made-up times in milliseconds. Pure.
// Users tune bucket sizes by this figure.
#include "trainer/gradients/reduce_times.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;

BucketTime::Point at(int when) { return BucketTime::Point(milliseconds(when)); }

// Buckets as {begun, ended}, and when backward was done.
ReduceTimes times_of(std::initializer_list<BucketTime> buckets, int finish_begun) {
    return reduce_times(std::vector<BucketTime>(buckets), at(finish_begun));
}

// Two buckets overlap from 10 to 40: this time counts once, so 0 to 50 and 70 to 80 are 60 ms.
// Backward ends at 60, so only the last 10 ms are waited for.
TEST(ReduceTimes, CountABucketFromWhereItWasBegun) {
    const auto times = times_of({{at(0), at(40)}, {at(10), at(50)}, {at(70), at(80)}}, 60);
    EXPECT_EQ(times.communication, milliseconds(60));
    EXPECT_EQ(times.waited, milliseconds(10));
    EXPECT_DOUBLE_EQ(times.hidden(), 5.0 / 6.0);
}

// What arrived before finish() was hidden completely; what was begun after it, not at all. Without
// any bucket nothing was hidden.
TEST(ReduceTimes, KnowAllAndNothing) {
    EXPECT_DOUBLE_EQ(times_of({{at(0), at(30)}, {at(5), at(31)}}, 31).hidden(), 1);
    EXPECT_DOUBLE_EQ(times_of({{at(20), at(30)}, {at(25), at(50)}}, 20).hidden(), 0);
    EXPECT_DOUBLE_EQ(times_of({}, 20).hidden(), 0);
}

// The last bucket is on its way from 0 to 40, and backward ends at 30: a quarter is waited for.
TEST(ReduceTimes, DivideABucketThatIsOnItsWay) {
    const auto times = times_of({{at(0), at(20)}, {at(0), at(40)}}, 30);
    EXPECT_EQ(times.communication, milliseconds(40));
    EXPECT_EQ(times.waited, milliseconds(10));
}

}  // namespace
}  // namespace ddprun::trainer
