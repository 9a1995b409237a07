// Asks the kernel of the machine that runs the test. Only what holds on every machine can be
// checked.
#include "agent/host/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ddprun::agent;

TEST(Hardware, KnowsThisHost) {
    EXPECT_FALSE(short_host_name().empty());
    // Slurm names nodes without their domain, so a dot would make this node unknown to its job.
    EXPECT_EQ(short_host_name().find('.'), std::string::npos);
    EXPECT_FALSE(allowed_cpus().empty());
    EXPECT_THAT(interface_addresses(), testing::Contains("127.0.0.1"));
}
