// The progress lines for the launcher, over real pipes. They must never disturb the training.
#include "trainer/worker/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace ddprun::trainer {
namespace {

// The launcher reads one line for each report, in exactly this form.
TEST(Progress, WritesALine) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    setenv("DDPRUN_PROGRESS_FD", std::to_string(ends[1]).c_str(), 1);
    Progress::from_environment().report(12, -1);
    unsetenv("DDPRUN_PROGRESS_FD");
    char text[64] = "";
    EXPECT_GT(read(ends[0], text, sizeof text - 1), 0);
    EXPECT_STREQ(text, "step=12 snapshot=-1\n");
    close(ends[0]);
    // The reader is gone. This ends neither the process (SIGPIPE) nor the training.
    Progress(ends[1]).report(13, 10);
    close(ends[1]);
}

// The launcher does not read: lines are dropped, and the training is not held up. 10,000 lines are
// far more than a pipe of 4096 bytes holds, so a write that blocks would hang the test here.
TEST(Progress, DropsLinesWhenNobodyReads) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    Progress progress(ends[1]);
    for (int step = 0; step < 10'000; ++step) progress.report(step, 0);
    close(ends[0]);
    close(ends[1]);
}

// Without the variable, or with one that names no open descriptor (987654), nothing is written. The
// variable may come from another program.
TEST(Progress, IsSilentWithoutADescriptor) {
    for (const char* value : {"", "x", "-1", "987654"}) {
        setenv("DDPRUN_PROGRESS_FD", value, 1);
        Progress::from_environment().report(1, 1);
    }
    unsetenv("DDPRUN_PROGRESS_FD");
}

// What a worker starts gets the variable, not the pipe: a file of its own may have the number.
TEST(Progress, WritesIntoNoOtherFile) {
    std::FILE* const file = std::tmpfile();
    ASSERT_TRUE(file);
    setenv("DDPRUN_PROGRESS_FD", std::to_string(fileno(file)).c_str(), 1);
    Progress::from_environment().report(1, 1);
    unsetenv("DDPRUN_PROGRESS_FD");
    struct stat status {};
    EXPECT_EQ(fstat(fileno(file), &status), 0);
    EXPECT_EQ(status.st_size, 0);
    std::fclose(file);
}

// ddprun looks for a word that ends with =nan. A name may have any letters and any length.
TEST(Progress, NamesAGradientThatIsNotFinite) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    Progress progress(ends[1]);
    progress.report_not_finite("layer 1.w=\n");
    progress.report_not_finite(std::string(1000, 'x'));
    char text[256] = "";
    EXPECT_GT(read(ends[0], text, sizeof text - 1), 0);
    EXPECT_EQ(std::string(text),
              "gradient.layer_1_w__=nan\ngradient." + std::string(50, 'x') + "=nan\n");
    close(ends[0]);
    close(ends[1]);
}

// The line that reports a new snapshot also says how many milliseconds saving it took.
TEST(Progress, TellsHowLongASnapshotTook) {
    EXPECT_EQ(Progress::line(12, 10, 250), "step=12 snapshot=10 snapshot_ms=250\n");
    EXPECT_EQ(Progress::line(12, 10), "step=12 snapshot=10\n");
    EXPECT_EQ(Progress::line(12, 10, 250, 40),
              "step=12 snapshot=10 snapshot_ms=250 saving_ms=40\n");
    EXPECT_EQ(Progress::line(12, -1, -1, 0), "step=12 snapshot=-1 saving_ms=0\n");
}

}  // namespace
}  // namespace ddprun::trainer
