// Durations in log sentences, parts of the lease, and the two points in time that stand for "never"
// and "long ago". Pure.
#include "base/time.h"

#include <gtest/gtest.h>

using namespace ddprun;
using namespace std::chrono_literals;

// Each range of lengths has a format of its own. The rows lie at and around the limits of these
// ranges: 0.1 s, 2 minutes and 2 hours.
TEST(Time, ReadsLikeASentence) {
    EXPECT_EQ(to_text(0s), "0 ms");
    EXPECT_EQ(to_text(12ms), "12 ms");
    EXPECT_EQ(to_text(250us), "0.25 ms");
    EXPECT_EQ(to_text(100ms), "0.1 s");
    EXPECT_EQ(to_text(8s), "8.0 s");
    EXPECT_EQ(to_text(119s), "119.0 s");
    EXPECT_EQ(to_text(120s), "2 m 00 s");
    EXPECT_EQ(to_text(4min + 30s), "4 m 30 s");
    EXPECT_EQ(to_text(2h), "2 h 00 m");
    EXPECT_EQ(to_text(3h + 12min + 59s), "3 h 12 m");
}

// All times of the protocol are shares of the lease, computed in floating point. With a lease of 10
// s the result must be exact, because tests compare such times for equality.
TEST(Time, SharesAreExactWhereTheMachinesNeedThem) {
    EXPECT_EQ(share(10s, 0.05), 500ms);
    EXPECT_EQ(share(10s, 0.45), 4500ms);
    EXPECT_EQ(share(10s, 0.8), 8s);
    EXPECT_EQ(share(0s, 0.8), 0s);
    EXPECT_EQ(share(10s, Share{450}), 4500ms);
    EXPECT_EQ(share(Duration{1999}, Share{500}), Duration{999});
    EXPECT_EQ(share(std::chrono::hours{24 * 366}, Share{3000}), std::chrono::hours{3 * 24 * 366});
    // Not so with fractions in binary: 0.5 + 0.1 is not 0.6.
    static_assert(Share{500} + 2 * Share{50} == Share{600});
}

// kLongAgo is half of the range and not all of it, so that `now - kLongAgo` does not overflow. A
// negative age would look like a message from the future.
TEST(Time, EndsAreBeyondAnyTime) {
    const Time now{1h};
    EXPECT_LT(kLongAgo, now);
    EXPECT_LT(now, kNever);
    EXPECT_GT(now - kLongAgo, 24h * 365);
}
