// The key of a run for trackers, made of the run's name. Pure. A key that changes between two
// versions of ddprun would begin a new run in a tracker after a requeue.
#include "agent/workers/run_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace ddprun::agent {
namespace {

TEST(RunKey, IsTwentyLettersAndDigitsThatBeginWithALetter) {
    for (int i = 0; i < 1000; ++i) {
        const std::string key = run_key("lab.8812." + std::to_string(i));
        ASSERT_EQ(key.size(), 20u);
        EXPECT_TRUE(key[0] >= 'a' && key[0] <= 'z') << key;
        EXPECT_EQ(key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
    }
}

// Jobs and elements have consecutive numbers.
TEST(RunKey, DiffersForEachRun) {
    std::set<std::string> keys, beginnings;
    for (int i = 0; i < 100'000; ++i) {
        const std::string key = run_key("lab." + std::to_string(i) + ".0");
        keys.insert(key);
        beginnings.insert(key.substr(0, 10));
    }
    EXPECT_EQ(keys.size(), 100'000u);
    EXPECT_EQ(beginnings.size(), 100'000u) << "the first half alone tells them apart";
}

TEST(RunKey, NeverChanges) { EXPECT_EQ(run_key("lab.8812.0"), "dz94m9gh0v0noa23vxmb"); }

}  // namespace
}  // namespace ddprun::agent
