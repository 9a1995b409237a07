// How text of several ranks becomes lines that are joined, and what passes as it comes.
#include "agent/output/collapsed_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/number_ranges.h"

namespace ddprun::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class CollapsedOutputTest : public testing::Test {
  protected:
    // Pieces as text: "lines" of several ranks, or "0<bytes>" of a stream.
    std::vector<std::string> texts(const CollapsedOutput::Pieces& pieces) {
        std::vector<std::string> all;
        for (const CollapsedOutput::Piece& piece : pieces) {
            const auto* who = static_cast<const int*>(piece.who);
            all.push_back((who == nullptr ? "" : std::to_string(*who) + "<" + piece.prefix) +
                          piece.bytes);
        }
        return all;
    }
    std::vector<std::string> print(int rank, std::string_view bytes) {
        const auto index = static_cast<std::size_t>(rank);
        return texts(output.print(&who[index], index, "p:", bytes, now));
    }
    std::vector<std::string> after(Duration time) { return texts(output.ready(now += time)); }

    const std::vector<int> who = {0, 1, 2};
    CollapsedOutput output{{0, 1, 2}, [](const std::vector<std::size_t>& ranks) {
                               return "[" + number_ranges({ranks.begin(), ranks.end()}) + "] ";
                           }};
    Time now = Time{1h};
};

TEST_F(CollapsedOutputTest, JoinsLinesFromAnyPieces) {
    print(0, "a\nb");
    print(1, "a\nb\n");
    print(0, "\n");
    EXPECT_THAT(print(2, "a\r\nb\n"), ElementsAre("[0-2] a\n[0-2] b\n"));
    EXPECT_EQ(output.next(), kNever);
}

TEST_F(CollapsedOutputTest, ShowsAPromptAfterTheWindow) {
    EXPECT_THAT(print(0, "line\nname: "), IsEmpty());
    EXPECT_THAT(after(199ms), IsEmpty());
    EXPECT_THAT(after(1ms), ElementsAre("[0] line\n", "0<p:name: "));
    EXPECT_THAT(print(0, "x\n"), ElementsAre("0<p:x\n"));
    EXPECT_THAT(print(0, "y\n"), IsEmpty());
    EXPECT_THAT(after(200ms), ElementsAre("[0] y\n"));
}

TEST_F(CollapsedOutputTest, PassesAProgressBarAtOnceAfterTheLinesOfItsRank) {
    print(1, "before\n");
    print(0, "before\nmine\n");
    EXPECT_THAT(print(0, " 10%\r 20%"), ElementsAre("[0-1] before\n[0] mine\n", "0<p: 10%\r 20%"));
    EXPECT_THAT(print(0, "\r 30%"), ElementsAre("0<p:\r 30%"));
    EXPECT_THAT(print(0, "\nafter\n"), ElementsAre("0<p:\n"));
}

TEST_F(CollapsedOutputTest, PassesALineThatMovesTheCursor) {
    EXPECT_THAT(print(0, "\x1b[2Kx\n"), ElementsAre("0<p:\x1b[2Kx\n"));
    EXPECT_THAT(print(0, "\x1b[1A"), ElementsAre("0<p:\x1b[1A"));
    EXPECT_THAT(print(1, "bell\a\n"), ElementsAre("1<p:bell\a\n"));
}

TEST_F(CollapsedOutputTest, JoinsColouredLinesAndEndsTheirColour) {
    for (int rank : {0, 1}) EXPECT_THAT(print(rank, "\x1b[1;31mred\n"), IsEmpty());
    EXPECT_THAT(print(2, "\x1b[1;31mred\n"), ElementsAre("[0-2] \x1b[1;31mred\x1b[0m\n"));
}

TEST_F(CollapsedOutputTest, PassesALineThatIsVeryLong) {
    const std::string half(CollapsedOutput::kLongest / 2 + 1, 'x');
    EXPECT_THAT(print(0, half), IsEmpty());
    EXPECT_THAT(print(0, half), ElementsAre("0<p:" + half + half));
    EXPECT_THAT(print(0, "\n"), ElementsAre("0<p:\n"));
    EXPECT_THAT(print(1, half + half + "\n"), ElementsAre("1<p:" + half + half + "\n"));
}

TEST_F(CollapsedOutputTest, EndsAnUnfinishedLineWithItsStream) {
    print(0, "no end");
    print(1, "no end\n");
    EXPECT_THAT(texts(output.finish(&who[0], now)), IsEmpty());
    EXPECT_THAT(after(200ms), ElementsAre("[0-1] no end\n"));
    print(2, "bar\rx");
    EXPECT_THAT(texts(output.finish(&who[2], now)), IsEmpty());  // the terminal ends it
    EXPECT_EQ(output.next(), kNever);
}

TEST_F(CollapsedOutputTest, ShowsAllThatIsHeldBeforeSomethingElse) {
    print(0, "a\nunfinished");
    EXPECT_THAT(texts(output.all(now)), ElementsAre("[0] a\n"));
    EXPECT_THAT(print(0, " line\n"), IsEmpty());
    EXPECT_THAT(after(200ms), ElementsAre("[0] unfinished line\n"));
}

}  // namespace
}  // namespace ddprun::agent
