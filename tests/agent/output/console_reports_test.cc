// What the operator hears about a console, word by word. console_test.cc shows when.
#include "agent/output/console_reports.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ddprun::agent {
namespace {

// What is said, or "nothing".
std::string text(const std::optional<Error>& said) { return said ? said->sentence() : "nothing"; }

// A reader that has gone does not come back; a full disk may get room. Each line would fail anew,
// so only the first failure is told.
TEST(ConsoleReports, TellABrokenConsoleOnce) {
    ConsoleReports gone("stdout", 10, Overflow::block);
    const auto said = gone.broken(EPIPE, true);
    EXPECT_EQ(text(said),
              "cannot write to stdout: Broken pipe; output to it is discarded from now on");
    EXPECT_EQ(said->code(), ErrorCode::closed);
    EXPECT_EQ(text(gone.broken(EPIPE, true)), "nothing");
    ConsoleReports full("/log/3", 10, Overflow::block);
    const auto disk = full.broken(ENOSPC, false);
    EXPECT_EQ(text(disk),
              "cannot write to /log/3: No space left on device; output that does not fit is "
              "discarded");
    EXPECT_EQ(disk->code(), ErrorCode::unavailable);
    EXPECT_EQ(text(full.broken(EIO, true)), "nothing");
}

// A full console slows down the workers or costs lines, and the sentence says which.
TEST(ConsoleReports, TellASlowConsoleOnce) {
    ConsoleReports waits("stdout", std::size_t{64} << 20, Overflow::block);
    EXPECT_EQ(text(waits.slow()),
              "stdout is too slow: 64 MiB are waiting; workers that print wait until it catches "
              "up");
    EXPECT_EQ(text(waits.slow()), "nothing");
    ConsoleReports drops("stderr", 1000, Overflow::drop);
    EXPECT_EQ(text(drops.slow()),
              "stderr is too slow: 1000 bytes are waiting; the oldest lines are dropped until it "
              "catches up");
}

// All lines that were dropped in a row are one message. Each row has its own.
TEST(ConsoleReports, CountDroppedLines) {
    ConsoleReports reports("stdout", 10, Overflow::drop);
    EXPECT_EQ(text(reports.dropped()), "nothing");
    reports.count_dropped(0);
    EXPECT_EQ(text(reports.dropped()), "nothing");
    reports.count_dropped(2);
    reports.count_dropped(3);
    EXPECT_EQ(text(reports.dropped()),
              "5 lines for stdout dropped (the oldest), because it was too slow "
              "(--console-overflow=drop)");
    reports.count_dropped(1);
    EXPECT_EQ(text(reports.dropped()).substr(0, 25), "1 line for stdout dropped");
    EXPECT_EQ(text(reports.dropped()), "nothing");
}

}  // namespace
}  // namespace ddprun::agent
