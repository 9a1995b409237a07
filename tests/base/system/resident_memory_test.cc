// How much memory a process uses, looked at now and then.
#include "base/system/resident_memory.h"

#include <gtest/gtest.h>

#include <vector>

using namespace ddprun;
using namespace std::chrono_literals;

TEST(MemoryGauge, LooksAgainAfterFiveSeconds) {
    const Time start{1h};
    MemoryGauge gauge;
    const std::int64_t first = gauge.read(start);
    EXPECT_GT(first, 0);
    const std::vector<char> more(64 << 20, 1);
    EXPECT_EQ(gauge.read(start + 4999ms), first);
    EXPECT_GE(gauge.read(start + 5s), first + (32 << 20)) << more.size();
}
