// --rdzv-conf=KEY=VALUE,…: torchrun's keys, and what becomes of them here. Pure.
#include "launcher/options/rdzv_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

// The quotes of the last line come from scripts that quote twice.
TEST(RdzvConf, KeysBecomeOurTimes) {
    auto conf = read_rdzv_conf("join_timeout=5, last_call_timeout=1,timeout=60,is_host=True");
    ASSERT_TRUE(conf) << conf.error();
    EXPECT_EQ(conf->join_timeout, milliseconds(5000));
    EXPECT_EQ(conf->last_call, milliseconds(1000));
    EXPECT_EQ(conf->static_timeout, milliseconds(60'000));
    EXPECT_EQ(conf->is_host, true);
    EXPECT_EQ(conf->lease, std::nullopt);
    EXPECT_THAT(conf->warnings, IsEmpty());
    EXPECT_EQ(read_rdzv_conf("'join_timeout=7'")->join_timeout, milliseconds(7000));
}

// torchrun gives a node up after `keep_alive_max_attempt` periods of `keep_alive_interval` seconds
// without a sign of life (3 periods of 5 s by default). That length is our lease.
TEST(RdzvConf, PeriodsMakeTheLease) {
    EXPECT_EQ(read_rdzv_conf("keep_alive_interval=4")->lease, milliseconds(12'000));
    EXPECT_EQ(read_rdzv_conf("keep_alive_max_attempt=4")->lease, milliseconds(20'000));
    EXPECT_EQ(read_rdzv_conf("keep_alive_interval=1,keep_alive_max_attempt=7")->lease,
              milliseconds(7000));
}

// torchrun takes unknown keys in silence. A user who has misspelled one then waits for an effect,
// so here a warning names it.
TEST(RdzvConf, WhatHasNoEffectIsNamed) {
    EXPECT_THAT(read_rdzv_conf("read_timeout=60,heartbeat=5,xyz=1")->warnings,
                ElementsAre("--rdzv-conf: the key read_timeout has no effect here",
                            "--rdzv-conf: the key heartbeat has no effect, here or with torchrun",
                            "--rdzv-conf: the key xyz has no effect, here or with torchrun"));
}

// Values that torchrun refuses are refused, also of keys without an effect here.
TEST(RdzvConf, WrongValuesAreNamed) {
    EXPECT_EQ(read_rdzv_conf("join_timeout=x").error().sentence(),
              "join_timeout=x is not a number of seconds; give one like 30 or 0.5");
    for (const char* bad : {"a", "a=", "=1", "a=1,", "is_host=maybe", "read_timeout=0",
                            "cas_backoff_max_seconds=nan", "join_timeout=0"})
        EXPECT_FALSE(read_rdzv_conf(bad)) << bad;
}

}  // namespace
}  // namespace ddprun::launcher
