#include "agent/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ddprun::agent;

TEST(Hardware, CountsVisibleDevicesAsCudaDoes) {
    EXPECT_EQ(count_visible_devices(""), 0);
    EXPECT_EQ(count_visible_devices("0,1, 2"), 3);
    EXPECT_EQ(count_visible_devices("0,-1,2"), 1);
    EXPECT_EQ(count_visible_devices("NoDevFiles"), 0);
    EXPECT_EQ(count_visible_devices("GPU-1a,MIG-2b"), 2);
    EXPECT_EQ(count_visible_devices("1,1"), 0);
}

TEST(Hardware, KnowsThisHost) {
    EXPECT_EQ(count_driver_gpus("/nonexistent"), 0);
    EXPECT_FALSE(short_host_name().empty());
    EXPECT_EQ(short_host_name().find('.'), std::string::npos);
    EXPECT_FALSE(allowed_cpus().empty());
    EXPECT_THAT(interface_addresses(), testing::Contains("127.0.0.1"));
    const auto before = raise_nofile_limit();
    ASSERT_TRUE(before);
    EXPECT_GE(*raise_nofile_limit(), *before);
}
