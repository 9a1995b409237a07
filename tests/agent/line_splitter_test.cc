#include "agent/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/last_lines.h"

using namespace ddprun::agent;
using testing::ElementsAre;

TEST(LineSplitter, GivesWholeLinesWithTheirPrefix) {
    LineSplitter splitter("[d0]:");
    EXPECT_EQ(splitter.take("par"), "");
    EXPECT_EQ(splitter.take("t\nsecond\nthi"), "[d0]:part\n[d0]:second\n");
    EXPECT_EQ(splitter.take(""), "");
    EXPECT_EQ(splitter.finish(), "[d0]:thi\n");
    EXPECT_EQ(splitter.finish(), "");
}

TEST(LineSplitter, WithoutPrefixBytesPassAsTheyCome) {
    LineSplitter splitter("");
    EXPECT_EQ(splitter.take("part\r"), "part\r");
    EXPECT_EQ(splitter.take(" done"), " done");
    EXPECT_EQ(splitter.finish(), "");
}

// A progress bar is shown update by update; a \r\n split over two reads stays one line end.
TEST(LineSplitter, ALoneReturnEndsALineToo) {
    LineSplitter splitter("p:");
    EXPECT_EQ(splitter.take("10%\r20%\r"), "p:10%\r");
    EXPECT_EQ(splitter.take("30%"), "p:20%\r");
    EXPECT_EQ(splitter.take("\r"), "");
    EXPECT_EQ(splitter.take("\nx\r\n"), "p:30%\r\np:x\r\n");
}

TEST(LineSplitter, AnyBytesAndAnyLengthPass) {
    LineSplitter splitter("p:");
    std::string bytes;
    for (int i = 0; i < 256; ++i)
        if (i != '\n' && i != '\r') bytes += static_cast<char>(i);
    EXPECT_EQ(splitter.take(bytes + "\n"), "p:" + bytes + "\n");
    const std::string piece(1 << 16, 'x');
    for (int i = 0; i < 160; ++i) EXPECT_EQ(splitter.take(piece), "");
    EXPECT_EQ(splitter.take("\n").size(), 2 + 160 * piece.size() + 1);
}

TEST(LineSplitter, AnEndlessLineIsCut) {
    LineSplitter splitter("p:", 8);
    EXPECT_EQ(splitter.take("12345"), "");
    EXPECT_EQ(splitter.take("67890"), "p:1234567890\n");
}

TEST(LastLines, KeepsTheLastTwentyOfBothStreams) {
    LastLines tail;
    LastLines::Stream out, err;
    for (int i = 0; i < 30; ++i) tail.take(out, "line " + std::to_string(i) + "\n");
    tail.take(out, "unfini");
    tail.take(err, "error\n\n");
    tail.take(out, "shed");
    tail.finish(out);
    const auto lines = tail.lines();
    ASSERT_EQ(lines.size(), 20U);
    EXPECT_EQ(lines[0], "line 12");
    EXPECT_EQ(lines[18], "error");
    EXPECT_EQ(lines[19], "unfinished");
}

TEST(LastLines, CutsLongLinesAndKeepsTheLastStateOfABar) {
    LastLines tail;
    LastLines::Stream out;
    tail.take(out, std::string(10'000'000, 'x'));
    tail.take(out, "\n 10%\r 20%\r");
    tail.take(out, " 30%\ndos\r\n 1%\r 2%\r\n");
    EXPECT_THAT(tail.lines(),
                ElementsAre(std::string(LastLines::kLongest, 'x'), " 30%", "dos", " 2%"));
}
