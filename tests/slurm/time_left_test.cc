// The remaining time of a job, as `squeue -h -o "%A %i %L"` prints it. Pure. ddprun stops the job
// so that the last snapshot is complete before this time is over.
#include "slurm/time_left.h"

#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

using std::chrono::seconds;
using Environment = std::map<std::string, std::string>;

const JobId kJob(Environment{{"SLURM_JOB_ID", "8812"}});

std::optional<seconds> left(const std::string& time) {
    return read_time_left("8812 8812 " + time, kJob);
}

// With and without hours and days, and with blanks around it.
TEST(TimeLeft, IsReadInAllItsForms) {
    EXPECT_EQ(left("1:05\n"), seconds(65));
    EXPECT_EQ(left("00:00"), seconds(0));
    EXPECT_EQ(left("2:03:04\n"), seconds(7384));
    EXPECT_EQ(left("10-02:03:04"), seconds(10 * 86400 + 7384));
    EXPECT_EQ(left(" 59:59 \n"), seconds(3599));
}

// squeue prints a line for each part of the job. Slurm ends the whole job with its first part.
TEST(TimeLeft, OfAHeterogeneousJobIsTheShortest) {
    EXPECT_EQ(
        read_time_left("8812 8812+0 2:00:00\n8813 8812+1 1:00:00\n8814 8812+2 UNLIMITED\n", kJob),
        seconds(3600));
}

// An element was stopped because its brother had less time.
TEST(TimeLeft, IsNotThatOfABrother) {
    EXPECT_EQ(read_time_left("8813 8812_0 1:00\n8812 8812_2 30:00\n8814 8812_1 2:00\n", kJob),
              seconds(1800));
    EXPECT_FALSE(read_time_left("8813 8812_0 1:00\n8814 8812_[3-5] 2:00\n", kJob));
}

// No limit and no answer are different: an answer that is missing must not delete an end time that
// is already known.
TEST(TimeLeft, MayHaveNoEnd) { EXPECT_EQ(left("UNLIMITED\n"), kNoLimit); }

// An error message, a number without a colon, or a number that would overflow gives no time. A
// wrong time would stop a healthy job.
TEST(TimeLeft, IsNotGuessed) {
    for (const char* text : {"", "\n", "INVALID", "NOT_SET", "5", "1-5", "-1:00", "1:-5", "1:2:3:4",
                             "x:10", "1:05 slurm_load_jobs error", "99999999999999999999:00"})
        EXPECT_FALSE(left(text)) << text;
    EXPECT_FALSE(read_time_left("1:05\n", kJob));
}

}  // namespace
}  // namespace ddprun::slurm
