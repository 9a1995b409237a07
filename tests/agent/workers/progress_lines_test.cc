// What a worker reports on its progress pipe. Any program may write there, so above all: what is
// made of lines that are torn, wrong or endless.
#include "agent/workers/progress_lines.h"

#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// The report of one line, given without its end.
ProgressReport report(const std::string& line) {
    ProgressLines lines;
    const auto reports = lines.take(line + "\n");
    EXPECT_EQ(reports.size(), 1U) << line;
    return reports.empty() ? ProgressReport{} : reports[0];
}

// As the trainer writes it, and as a shell script may write it: each part may be missing, the order
// is free, and unknown words do no harm.
TEST(ProgressLines, ReadsWhatALineTells) {
    const ProgressReport all = report("step=12 snapshot=10 snapshot_ms=250");
    EXPECT_EQ(all.step, 12);
    EXPECT_EQ(all.snapshot, 10);
    EXPECT_EQ(all.snapshot_took, milliseconds{250});
    const ProgressReport turned = report("loss=0.5 snapshot=-1 step=3");
    EXPECT_EQ(turned.step, 3);
    EXPECT_EQ(turned.snapshot, -1);
    EXPECT_EQ(turned.snapshot_took, Duration{});
    for (const char* nothing : {"", "step", "step=", "step=x", "laststep=4", "Step=4", "step= 4"})
        EXPECT_EQ(report(nothing).step, -1) << nothing;
}

// A loss that is no number is found under any name, as Python and C++ print it.
TEST(ProgressLines, FindsWhatIsNoNumber) {
    EXPECT_EQ(report("step=12 loss=nan").not_finite, "loss=nan");
    EXPECT_EQ(report("step=12 train/loss=-inf lr=0.1").not_finite, "train/loss=-inf");
    EXPECT_EQ(report("grad_norm=inf loss=nan").not_finite, "grad_norm=inf");
    for (const char* finite :
         {"loss=0.5", "loss=info", "name=nancy", "=nan", "nan", "\x1b[2J=nan", "loss=1e400"})
        EXPECT_EQ(report(finite).not_finite, "") << finite;
    EXPECT_EQ(report(std::string(65, 'x') + "=nan").not_finite, "");
}

// The leader closes the connection of a node that sends a number out of range. So a worker's wrong
// number is taken as not told here, and a snapshot cannot have taken longer than a day.
TEST(ProgressLines, KeepsNumbersInRange) {
    EXPECT_EQ(report("step=9007199254740992").step, std::int64_t{1} << 53);
    for (const char* wrong : {"step=9007199254740993", "step=99999999999999999999", "step=-7"})
        EXPECT_EQ(report(wrong).step, -1) << wrong;
    EXPECT_EQ(report("snapshot_ms=999999999999").snapshot_took, hours{24});
    EXPECT_EQ(report("snapshot_ms=-5").snapshot_took, Duration{});
}

// A program tells the newest snapshot in each line; its time counts once.
TEST(SavingTime, CountsEachSnapshotOnce) {
    SavingTime saving;
    saving.hear(report("step=1 snapshot=-1"));
    EXPECT_EQ(saving.all(), Duration{});
    for (int i = 0; i < 3; ++i) saving.hear(report("step=12 snapshot=10 snapshot_ms=250"));
    EXPECT_EQ(saving.all(), milliseconds{250});
    saving.hear(report("step=20 snapshot=20"));
    saving.hear(report("step=21 snapshot=20 snapshot_ms=50"));
    EXPECT_EQ(saving.all(), milliseconds{300}) << "the time may come with a later line";
    saving.hear(report("step=5 snapshot=10 snapshot_ms=250"));
    EXPECT_EQ(saving.all(), milliseconds{300}) << "an older one";
}

// Who saves while it trains says itself what that has taken from training.
TEST(SavingTime, BelievesAProgramThatSumsUp) {
    SavingTime saving;
    saving.hear(report("step=12 snapshot=10 snapshot_ms=250"));
    saving.hear(report("step=13 snapshot=10 snapshot_ms=250 saving_ms=40"));
    EXPECT_EQ(saving.all(), milliseconds{40});
    saving.hear(report("step=14 snapshot=14 snapshot_ms=990"));
    saving.hear(report("step=14 snapshot=14 saving_ms=30"));
    EXPECT_EQ(saving.all(), milliseconds{40}) << "sums only grow";
    saving.hear(report("saving_ms=99999999999999"));
    EXPECT_LT(saving.all(), hours{24} * 4000);
}

// A read of the pipe may end in the middle of a line, and bring several lines.
TEST(ProgressLines, MayComeInPieces) {
    ProgressLines lines;
    EXPECT_TRUE(lines.take("step=1").empty());
    EXPECT_TRUE(lines.take("2 snap").empty());
    const auto reports = lines.take("shot=5\nstep=13\nstep=1");
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[0].step, 12);
    EXPECT_EQ(reports[0].snapshot, 5);
    EXPECT_EQ(reports[1].step, 13);
    EXPECT_EQ(lines.take("4\n").at(0).step, 14);
}

// A worker that never ends its line must not fill ddprun's memory. The line is skipped up to its
// end, also if its end looks like a report; the next line counts again.
TEST(ProgressLines, SkipsALineThatIsTooLong) {
    ProgressLines lines;
    const std::string piece(ProgressLines::kLongest - 1, 'x');
    EXPECT_TRUE(lines.take(piece).empty());
    EXPECT_TRUE(lines.take("x").empty());
    EXPECT_TRUE(lines.take(piece + "xx").empty());
    const auto reports = lines.take(" step=1\nstep=2\n");
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0].step, 2);
    // One byte less is a line as any other.
    EXPECT_TRUE(lines.take(piece).empty());
    EXPECT_EQ(lines.take(" step=3\n").at(0).step, 3);
}

}  // namespace
}  // namespace ddprun::agent
