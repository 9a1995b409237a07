#include "launcher/report/exit_code.h"

#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

// The table of design 4.5, and the edges at which a failure must not become a success.
TEST(ExitCode, IsWhatSlurmShouldSee) {
    struct Row {
        Verdict verdict;
        int detail, code;
    };
    for (const Row& row :
         {Row{Verdict::succeeded, 0, 0}, Row{Verdict::worker_failed, 7, 7},
          Row{Verdict::worker_failed, -9, 137}, Row{Verdict::worker_failed, 0, 1},
          Row{Verdict::worker_failed, 256, 1}, Row{Verdict::worker_failed, -200, 1},
          Row{Verdict::worker_failed, -2147483647 - 1, 1}, Row{Verdict::usage, 0, 2},
          Row{Verdict::unavailable, 0, 69}, Row{Verdict::internal, 0, 70},
          Row{Verdict::stopped_with_work_left, 0, 75}, Row{Verdict::stopped_by_signal, 2, 130},
          Row{Verdict::stopped_by_signal, 15, 143}, Row{Verdict::stopped_by_signal, 0, 1}})
        EXPECT_EQ(exit_code(row.verdict, row.detail), row.code)
            << to_string(row.verdict) << " " << row.detail;
}

TEST(ExitCode, OfErrors) {
    EXPECT_EQ(verdict_of(Error(ErrorCode::usage, "")), Verdict::usage);
    EXPECT_EQ(verdict_of(Error(ErrorCode::internal, "")), Verdict::internal);
    EXPECT_EQ(verdict_of(Error(ErrorCode::timed_out, "")), Verdict::unavailable);
}

}  // namespace
}  // namespace ddprun::launcher
