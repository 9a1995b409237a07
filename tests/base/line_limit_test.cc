// Ten lines in ten seconds; what was left out is counted once.
#include "base/line_limit.h"

#include <gtest/gtest.h>

namespace ddprun {
namespace {

using namespace std::chrono_literals;

TEST(LineLimit, CountsWhatItLeavesOut) {
    LineLimit limit;
    const Time begin{100s};
    for (int i = 0; i < 13; ++i) {
        const LineLimit::Said said = limit.say(begin + i * 100ms);
        EXPECT_EQ(said.allowed, i < 10) << i;
        EXPECT_EQ(said.unsaid, 0);
    }
    LineLimit::Said said = limit.say(begin + 10s);
    EXPECT_TRUE(said.allowed);
    EXPECT_EQ(said.unsaid, 3);
    said = limit.say(begin + 11s);
    EXPECT_TRUE(said.allowed);
    EXPECT_EQ(said.unsaid, 0);
}

// A script that asks again and again gets the same refusal.
TEST(LineLimit, SaysOnceWhatRepeats) {
    LineLimit limit;
    const Time begin{100s};
    int lines = 0, unsaid = 0;
    for (int i = 0; i < 290; ++i) {
        const LineLimit::Said said = limit.say(begin + i * 200ms, "no secret");
        lines += said.allowed;
        unsaid += said.unsaid;
    }
    EXPECT_EQ(lines, 1);
    EXPECT_EQ(unsaid, 0);
    EXPECT_TRUE(limit.say(begin + 59s, "another job").allowed);
    EXPECT_TRUE(limit.say(begin + 59s, "no secret").allowed);
    EXPECT_FALSE(limit.say(begin + 118s, "no secret").allowed);
    EXPECT_TRUE(limit.say(begin + 119s, "no secret").allowed);
}

}  // namespace
}  // namespace ddprun
