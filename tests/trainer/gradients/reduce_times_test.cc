#include "trainer/gradients/reduce_times.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;

BucketTime::Point at(int when) { return BucketTime::Point(milliseconds(when)); }

ReduceTimes times_of(std::initializer_list<BucketTime> buckets, int finish_begun) {
    return reduce_times(std::vector<BucketTime>(buckets), at(finish_begun));
}

// What went out while the group's thread was at another bucket counts, once.
TEST(ReduceTimes, CountABucketFromWhereItWasBegun) {
    const auto times = times_of({{at(0), at(40)}, {at(10), at(50)}, {at(70), at(80)}}, 60);
    EXPECT_EQ(times.communication, milliseconds(60));
    EXPECT_EQ(times.waited, milliseconds(10));
    EXPECT_DOUBLE_EQ(times.hidden(), 5.0 / 6.0);
}

// All that arrived before finish() was hidden, however short the group's thread was at it.
TEST(ReduceTimes, KnowAllAndNothing) {
    EXPECT_DOUBLE_EQ(times_of({{at(0), at(30)}, {at(5), at(31)}}, 31).hidden(), 1);
    EXPECT_DOUBLE_EQ(times_of({{at(20), at(30)}, {at(25), at(50)}}, 20).hidden(), 0);
    EXPECT_DOUBLE_EQ(times_of({}, 20).hidden(), 0);
}

// The last one is awaited for half of its way; the rest lies behind backward.
TEST(ReduceTimes, DivideABucketThatIsOnItsWay) {
    const auto times = times_of({{at(0), at(20)}, {at(0), at(40)}}, 30);
    EXPECT_EQ(times.communication, milliseconds(40));
    EXPECT_EQ(times.waited, milliseconds(10));
}

}  // namespace
}  // namespace ddprun::trainer
