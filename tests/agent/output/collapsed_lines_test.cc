// What the console shows of lines that several ranks print.
#include "agent/output/collapsed_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/number_ranges.h"

namespace ddprun::agent {
namespace {

using namespace std::chrono_literals;

std::string label(const std::vector<std::size_t>& indexes) {
    return "[" + number_ranges({indexes.begin(), indexes.end()}) + "] ";
}

class CollapsedLinesTest : public testing::Test {
  protected:
    void take(std::size_t rank, const std::string& line) { lines.take(rank, line, now); }
    void take_all(std::size_t rank, const std::vector<std::string>& all) {
        for (const std::string& line : all) take(rank, line);
    }
    std::string after(Duration time) { return lines.ready(now += time); }

    CollapsedLines lines{{0, 1, 2, 3}, label};
    Time now = Time{1h};
};

TEST_F(CollapsedLinesTest, PrintsOnceWhatAllRanksPrint) {
    for (std::size_t rank : {0, 1, 2, 3}) take(rank, "warning");
    EXPECT_EQ(after(0s), "[0-3] warning\n");
    EXPECT_EQ(lines.next(), kNever);
}

TEST_F(CollapsedLinesTest, WaitsForOtherRanksForTheWindow) {
    take(0, "warning");
    EXPECT_EQ(lines.next(), now + CollapsedLines::kWindow);
    EXPECT_EQ(after(150ms), "");
    take(2, "warning");
    EXPECT_EQ(after(49ms), "");
    EXPECT_EQ(after(1ms), "[0,2] warning\n");
    take(1, "warning");
    EXPECT_EQ(after(200ms), "[1] warning\n");
}

TEST_F(CollapsedLinesTest, NamesTheRanksInTheirOrder) {
    for (std::size_t rank : {3, 0, 2}) take(rank, "warning");
    EXPECT_EQ(after(200ms), "[0,2-3] warning\n");
}

TEST_F(CollapsedLinesTest, KeepsTheOrderOfEachRank) {
    take_all(0, {"a", "b"});
    take_all(1, {"b", "a"});
    EXPECT_EQ(after(200ms), "[0] a\n[0-1] b\n[1] a\n");
}

TEST_F(CollapsedLinesTest, PrintsALineAsOftenAsARankDoes) {
    take_all(0, {"x", "x", "x"});
    take_all(1, {"x", "x"});
    EXPECT_EQ(after(200ms), "[0-1] x\n[0-1] x\n[0] x\n");
}

TEST_F(CollapsedLinesTest, KeepsEqualFramesAroundALineThatDiffers) {
    for (std::size_t rank : {0, 1, 2})
        take_all(rank, {"Traceback", "  in train", "ValueError: " + std::to_string(rank), "during",
                        "exit"});
    EXPECT_EQ(after(200ms),
              "[0-2] Traceback\n[0-2]   in train\n"
              "[0] ValueError: 0\n[1] ValueError: 1\n[2] ValueError: 2\n"
              "[0-2] during\n[0-2] exit\n");
}

TEST_F(CollapsedLinesTest, ShowsTheRankThatDiffersInFull) {
    for (std::size_t rank : {0, 1, 3}) take_all(rank, {"begin", "end"});
    take_all(2, {"begin", "ValueError", "end"});
    EXPECT_EQ(after(0s), "[0-3] begin\n");
    EXPECT_EQ(after(200ms), "[2] ValueError\n[0-3] end\n");
}

TEST_F(CollapsedLinesTest, LeavesOutTheTagThatPyTorchPutsBeforeATraceback) {
    for (int rank : {0, 1, 2, 3})
        take(static_cast<std::size_t>(rank), "[rank" + std::to_string(rank) + "]: ValueError");
    EXPECT_EQ(after(0s), "[0-3] [rank*]: ValueError\n");
    take(1, "[rank1]: alone");
    EXPECT_EQ(after(200ms), "[1] [rank1]: alone\n");
}

// Else nobody could tell which tag they had.
TEST_F(CollapsedLinesTest, JoinsOnlyLinesWithTheTagOfTheirOwnRank) {
    take(0, "[rank0]: x");
    take(1, "[rank0]: x");
    take(2, "x");
    take(3, "[rank*]: x");
    EXPECT_THAT(after(200ms), testing::AllOf(testing::HasSubstr("[0] [rank0]: x\n"),
                                             testing::HasSubstr("[1] [rank0]: x\n"),
                                             testing::HasSubstr("[2] x\n"),
                                             testing::HasSubstr("[3] [rank*]: x\n")));
    take(1, "[rank*]: x");
    take(2, "[rank*]: x");
    EXPECT_EQ(after(200ms), "[1] [rank*]: x\n[2] [rank*]: x\n");
}

TEST_F(CollapsedLinesTest, DelaysNoLineBecauseOfOneThatCameLaterBeforeIt) {
    take_all(0, {"begin", "end"});
    now += 150ms;
    take_all(1, {"begin", "late", "end"});
    EXPECT_EQ(after(50ms), "[0-1] begin\n[1] late\n[0-1] end\n");
}

TEST_F(CollapsedLinesTest, ReleasesWhatARankHasPrintedAndNoMore) {
    take(3, "first");
    take_all(0, {"a", "b"});
    take(1, "c");
    lines.release(0);
    EXPECT_EQ(after(0s), "[3] first\n[0] a\n[0] b\n");
    lines.release(0);
    EXPECT_EQ(after(0s), "");
    lines.release_all();
    EXPECT_EQ(after(0s), "[1] c\n");
}

TEST_F(CollapsedLinesTest, HoldsNoMoreThanItsLimit) {
    std::string printed;
    for (std::size_t i = 0; i < CollapsedLines::kMostLines + 10; ++i)
        take(0, std::to_string(i) + "x");
    printed = after(0s);
    EXPECT_EQ(std::ranges::count(printed, '\n'), 10);
    lines.release_all();
    after(0s);
    take(0, std::string(CollapsedLines::kMostBytes + 1, 'x'));
    EXPECT_EQ(after(0s).size(), CollapsedLines::kMostBytes + 6);
}

TEST(CollapsedLines, FoldsATracebackOfManyRanksToItsLength) {
    std::vector<int> ranks(512);
    for (int i = 0; i < 512; ++i) ranks[static_cast<std::size_t>(i)] = i;
    CollapsedLines lines(ranks, label);
    for (std::size_t rank = 0; rank < 512; ++rank)
        for (int line = 0; line < 40; ++line)
            lines.take(rank, "[rank" + std::to_string(rank) + "]: line " + std::to_string(line),
                       Time{1s});
    const std::string printed = lines.ready(Time{1s});
    EXPECT_EQ(std::ranges::count(printed, '\n'), 40);
    EXPECT_TRUE(printed.starts_with("[0-511] [rank*]: line 0\n"));
}

}  // namespace
}  // namespace ddprun::agent
