// The account of its end that a worker leaves, and the code with which it ends.
#include "trainer/worker/error_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;

// With code 2 the launcher does not start a job again that has made no progress: neither a wrong
// argument nor ranks that differ are repaired by it. All else may pass.
TEST(ErrorFile, TheCodeSaysWhetherARestartMayHelp) {
    for (const ErrorCode code : {ErrorCode::usage, ErrorCode::refused}) {
        EXPECT_EQ(report_error(Error(code, "ranks differ")), 2) << to_string(code);
        EXPECT_THAT(error_file_text(Error(code, "ranks differ"), 0), HasSubstr("\"errorCode\":2}"));
    }
    for (const ErrorCode code :
         {ErrorCode::internal, ErrorCode::unavailable, ErrorCode::timed_out, ErrorCode::exists,
          ErrorCode::not_found, ErrorCode::malformed, ErrorCode::closed}) {
        EXPECT_EQ(report_error(Error(code, "a peer has gone")), 1) << to_string(code);
        EXPECT_THAT(error_file_text(Error(code, "gone"), 0), HasSubstr("\"errorCode\":1}"));
    }
}

}  // namespace
}  // namespace ddprun::trainer
