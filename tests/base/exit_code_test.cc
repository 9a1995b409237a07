// The exit code for each error that ends ddprun before a job, or without one. Slurm and batch
// scripts act on these codes, so they must not change. Pure.
#include "base/exit_code.h"

#include <gtest/gtest.h>

namespace ddprun {
namespace {

TEST(ExitCode, OfErrors) {
    EXPECT_EQ(exit_code(Error(ErrorCode::usage, "")), 2);
    EXPECT_EQ(exit_code(Error(ErrorCode::internal, "")), 70);
    EXPECT_EQ(exit_code(Error(ErrorCode::unavailable, "")), 69);
    EXPECT_EQ(exit_code(Error(ErrorCode::timed_out, "")), 69);
    EXPECT_EQ(code_of_signal(15), 143);  // 128 + SIGTERM, as a shell says it
}

}  // namespace
}  // namespace ddprun
