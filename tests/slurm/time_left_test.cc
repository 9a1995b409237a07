// The remaining time of a job and of a step, as squeue prints it. Pure. ddprun stops the job so
// that the last snapshot is complete before this time is over.
#include "slurm/time_left.h"

#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

using std::chrono::seconds;
using Environment = std::map<std::string, std::string>;

const JobId kJob(Environment{{"SLURM_JOB_ID", "8812"}});

std::optional<seconds> left_in(const std::string& lines) {
    const auto listed = find_listed(lines, kJob);
    return listed ? std::optional(listed->left) : std::nullopt;
}
std::optional<seconds> left(const std::string& time) { return left_in("8812 8812 " + time); }

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
    EXPECT_EQ(left_in("8812 8812+0 2:00:00\n8813 8812+1 1:00:00\n8814 8812+2 UNLIMITED\n"),
              seconds(3600));
}

// An element was stopped because its brother had less time.
TEST(TimeLeft, IsNotThatOfABrother) {
    EXPECT_EQ(left_in("8813 8812_0 1:00\n8812 8812_2 30:00\n8814 8812_1 2:00\n"), seconds(1800));
    EXPECT_FALSE(left_in("8813 8812_0 1:00\n8814 8812_[3-5] 2:00\n"));
}

// squeue names the steps of an element by its task, which the environment may not tell.
TEST(TimeLeft, TellsHowSlurmSpellsTheJob) {
    EXPECT_EQ(find_listed("8812 8810_1 30:00\n", kJob)->id.spelled(), "8810_1");
    EXPECT_EQ(find_listed("8812 8812 30:00\n", kJob)->id.spelled(), "8812");
    EXPECT_EQ(find_listed("8812 8812+0 30:00\n", kJob)->id.spelled(), "8812");
}

// srun --time gives a step a limit of its own. Steps of brothers and other steps do not count.
TEST(TimeLeft, OfAStepIsItsOwnLimit) {
    const JobId element = find_listed("8812 8810_1 30:00\n", kJob)->id;
    const char* steps =
        "8810_1.batch UNLIMITED 2:00\n8810_1.0 3:00 0:50\n8810_1.1 1:00 0:50\n"
        "8810_2.0 1:00 0:50\n8810_1.10 1:00 0:20\n";
    EXPECT_EQ(step_time_left(steps, element, "0"), seconds(130));
    EXPECT_EQ(step_time_left(steps, element, "batch"), kNoLimit);
    EXPECT_EQ(step_time_left(steps, element, "7"), kNoLimit);
    EXPECT_EQ(step_time_left("8812.0 1:00 1:20\n", kJob, "0"), seconds(0));
    EXPECT_EQ(step_time_left("8812.0 1:00 INVALID\n8812\n\n", kJob, "0"), kNoLimit);
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
    EXPECT_FALSE(left_in("1:05\n"));
}

}  // namespace
}  // namespace ddprun::slurm
