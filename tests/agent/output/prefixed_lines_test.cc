// Cuts what workers print into lines, adds prefixes, and keeps the last lines for the report. Two
// pure files: bytes in, text out.
#include "agent/output/prefixed_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "agent/output/last_lines.h"

using namespace ddprun::agent;
using testing::ElementsAre;

// Reads of a pipe end anywhere. The line that has no end yet waits, and gets one at the end of the
// stream.
TEST(PrefixedLines, GivesWholeLinesWithTheirPrefix) {
    PrefixedLines splitter("[d0]:");
    EXPECT_EQ(splitter.take("par"), "");
    EXPECT_EQ(splitter.take("t\nsecond\nthi"), "[d0]:part\n[d0]:second\n");
    EXPECT_EQ(splitter.take(""), "");
    EXPECT_EQ(splitter.finish(), "[d0]:thi\n");
    EXPECT_EQ(splitter.finish(), "");
}

// A lone worker sees its prompt or progress bar at once, as without ddprun.
TEST(PrefixedLines, WithoutPrefixBytesPassAsTheyCome) {
    PrefixedLines splitter("");
    EXPECT_EQ(splitter.take("part\r"), "part\r");
    EXPECT_EQ(splitter.take(" done"), " done");
    EXPECT_EQ(splitter.finish(), "");
}

// A progress bar (\r) is shown update by update. A \r\n that two reads cut in the middle stays one
// line end, so a \r at the end of a read has to wait for the next byte.
TEST(PrefixedLines, ALoneReturnEndsALineToo) {
    PrefixedLines splitter("p:");
    EXPECT_EQ(splitter.take("10%\r20%\r"), "p:10%\r");
    EXPECT_EQ(splitter.take("30%"), "p:20%\r");
    EXPECT_EQ(splitter.take("\r"), "");
    EXPECT_EQ(splitter.take("\nx\r\n"), "p:30%\r\np:x\r\n");
}

// Output may be binary or in any encoding: each byte value passes. A line of 10 MiB is below the
// limit (32 MiB), so it stays whole.
TEST(PrefixedLines, AnyBytesAndAnyLengthPass) {
    PrefixedLines splitter("p:");
    std::string bytes;
    for (int i = 0; i < 256; ++i)
        if (i != '\n' && i != '\r') bytes += static_cast<char>(i);
    EXPECT_EQ(splitter.take(bytes + "\n"), "p:" + bytes + "\n");
    const std::string piece(1 << 16, 'x');
    for (int i = 0; i < 160; ++i) EXPECT_EQ(splitter.take(piece), "");
    EXPECT_EQ(splitter.take("\n").size(), 2 + 160 * piece.size() + 1);
}

// 64 workers that each print half a line would fill 4 GiB together. Here 10 streams share 100
// bytes; each may keep 8 in any case, and the longest line alone is 50.
TEST(PrefixedLines, UnfinishedLinesShareOneBudget) {
    const auto budget = std::make_shared<LineBudget>(LineBudget{.limit = 100, .sure = 8});
    std::deque<PrefixedLines> streams;
    for (int i = 0; i < 10; ++i) streams.emplace_back("p:", std::vector<std::string>(), budget, 50);
    std::size_t cut = 0;
    for (int i = 0; i < 40; ++i)
        for (PrefixedLines& stream : streams) {
            stream.take("x");
            if (stream.too_long()) cut += stream.cut().size() - 3;  // prefix and line end
            EXPECT_LE(budget->used, 100 + 10 * 8u);
        }
    EXPECT_EQ(budget->used + cut, 400u) << "nothing is lost";
    EXPECT_GT(cut, 0u);
    streams.pop_back();
    for (PrefixedLines& stream : streams) stream.finish();
    EXPECT_EQ(budget->used, 0u) << "what ends gives back what it had";
}

// A worker that never writes a line end must not fill ddprun's memory. The limit is 8 bytes here.
TEST(PrefixedLines, ALineTooLongToBeKeptIsCut) {
    PrefixedLines splitter("p:", {}, nullptr, 8);
    EXPECT_EQ(splitter.take("12345"), "");
    EXPECT_FALSE(splitter.too_long());
    EXPECT_EQ(splitter.take("67890"), "");
    EXPECT_TRUE(splitter.too_long());
    EXPECT_EQ(splitter.cut(), "p:1234567890\n");
    EXPECT_EQ(splitter.take("1\n"), "p:1\n");
}

// The other way, for a console that can be held: what is kept goes out, and the rest of the line
// passes without being kept. Only \n ends such a line; a \r in it does not.
TEST(PrefixedLines, ALineTooLongToBeKeptIsOpened) {
    PrefixedLines splitter("p:", {}, nullptr, 8);
    EXPECT_EQ(splitter.take("1\n23456789"), "p:1\n");
    EXPECT_EQ(splitter.open(), "p:23456789");
    EXPECT_EQ(splitter.take("abcdefghijkl\rm"), "abcdefghijkl\rm");
    EXPECT_TRUE(splitter.is_open());
    EXPECT_EQ(splitter.take("n\no\np"), "n\np:o\n");
    EXPECT_FALSE(splitter.is_open());
    EXPECT_EQ(splitter.take("23456789"), "");
    EXPECT_EQ(splitter.open(), "p:p23456789");
    EXPECT_EQ(splitter.finish(), "\n");
    EXPECT_EQ(splitter.take("23456789"), "");
    EXPECT_EQ(splitter.open(), "p:23456789");
    // The console has ended the line for us, so the next bytes need a prefix.
    splitter.begin_anew();
    EXPECT_EQ(splitter.take("a\n"), "p:a\n");
}

// The filters of torchrun's --duplicate-stdout-filters. A needle may be cut by two reads ("lo",
// "ss"). The empty needle is in every line.
TEST(PrefixedLines, OnlyLinesWithOneOfTheNeedlesPass) {
    PrefixedLines splitter("p:", {"loss", "err"});
    EXPECT_EQ(splitter.take("lo"), "");
    EXPECT_EQ(splitter.take("ss 1\nstep 2\n"), "p:loss 1\n");
    EXPECT_EQ(splitter.take("none\nan error"), "");
    EXPECT_EQ(splitter.finish(), "p:an error\n");
    PrefixedLines all("", {""});
    EXPECT_EQ(all.take("a\nb"), "a\n");
    EXPECT_EQ(all.finish(), "b\n");
}

namespace {

// Half of the bytes are line ends and letters, so that short lines and all kinds of line ends are
// frequent; the other half may be anything.
std::string any_bytes(std::mt19937& random, std::size_t size) {
    constexpr std::string_view kOften = "\n\r\r\nab";
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i)
        bytes += random() % 2 ? kOften[random() % kOften.size()] : static_cast<char>(random());
    return bytes;
}

// Hands the bytes on in random pieces.
template <class Take>
// Hands the bytes on in random pieces of 0 to 19 bytes, as reads of a pipe might.
void in_pieces(std::mt19937& random, std::string_view bytes, Take take) {
    while (!bytes.empty()) {
        const std::size_t piece = std::min<std::size_t>(random() % 20, bytes.size());
        take(bytes.substr(0, piece));
        bytes.remove_prefix(piece);
    }
}

}  // namespace

// 500 random texts. However they are cut, the same lines come out, and without their prefixes they
// are the same bytes. Only the last line may get an end that it did not have.
TEST(PrefixedLines, PiecesMakeNoDifference) {
    for (unsigned seed = 0; seed < 500; ++seed) {
        std::mt19937 random(seed);
        const std::string bytes = any_bytes(random, 1 + random() % 300);
        PrefixedLines whole("<p>");
        std::string expected = whole.take(bytes);
        expected += whole.finish();
        PrefixedLines splitter("<p>");
        std::string got;
        in_pieces(random, bytes, [&](std::string_view piece) { got += splitter.take(piece); });
        got += splitter.finish();
        ASSERT_EQ(got, expected) << "seed " << seed;
        std::string bare = got;
        for (std::size_t at; (at = bare.find("<p>")) != bare.npos;) bare.erase(at, 3);
        ASSERT_EQ(bare.substr(0, bytes.size()), bytes) << "seed " << seed;
        ASSERT_TRUE(bare.size() == bytes.size() || bare == bytes + "\n") << "seed " << seed;
    }
}

// Large pieces take a short cut: lines that cannot be among the last 20 are skipped. The result
// must be as if every byte had come alone.
TEST(LastLines, PiecesMakeNoDifference) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        std::string bytes;
        for (int i = 0; i < 40; ++i)
            // A number at the end of each line, so that most lines count and the short cut is
            // taken.
            bytes += any_bytes(random, random() % 8) + std::to_string(i) + "\n";
        LastLines alone, pieces, once;
        LastLines::Stream a, b, c;
        for (const char& byte : bytes) alone.take(a, {&byte, 1});
        in_pieces(random, bytes, [&](std::string_view piece) { pieces.take(b, piece); });
        once.take(c, bytes);
        ASSERT_EQ(pieces.lines(), alone.lines()) << "seed " << seed;
        ASSERT_EQ(once.lines(), alone.lines()) << "seed " << seed;
    }
}

// The report shows the last 20 lines of stdout and stderr together. The two streams do not mix
// within a line, and empty lines take no place.
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

// A line of 10 MB is cut to what a report can show. Of a progress bar only what the terminal would
// still show is kept, or 20 states of one bar would push the traceback out.
TEST(LastLines, CutsLongLinesAndKeepsTheLastStateOfABar) {
    LastLines tail;
    LastLines::Stream out;
    tail.take(out, std::string(10'000'000, 'x'));
    tail.take(out, "\n 10%\r 20%\r");
    tail.take(out, " 30%\ndos\r\n 1%\r 2%\r\n");
    EXPECT_THAT(tail.lines(),
                ElementsAre(std::string(LastLines::kLongest, 'x'), " 30%", "dos", " 2%"));
}
