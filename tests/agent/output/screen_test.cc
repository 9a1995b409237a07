// What a terminal shows when several streams and the log write to it. The tests play the bytes on a
// small model of a terminal and look at its rows.
#include "agent/output/screen.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ddprun::agent {
namespace {

// Knows \n (with \r, as a terminal's own OPOST gives it), \r, erase, colours and text; a row wraps
// after `columns`.
std::vector<std::string> shown(const std::string& bytes, std::size_t columns = 1 << 20) {
    std::vector<std::string> rows(1);
    std::size_t column = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string& row = rows.back();
        if (bytes[i] == '\n') {
            rows.emplace_back();
            column = 0;
        } else if (bytes[i] == '\r') {
            column = 0;
        } else if (bytes.compare(i, 4, "\x1b[2K") == 0) {
            row.clear();
            i += 3;
        } else if (bytes.compare(i, 4, "\x1b[0m") == 0) {
            i += 3;
        } else if (bytes.compare(i, 4, "\x1b[2A") == 0) {
            // Rows above are kept until J: the model forgets those below the cursor at once.
            EXPECT_EQ(bytes.compare(i + 4, 3, "\x1b[J"), 0);
            rows.resize(rows.size() - 2);
            rows.back().clear();
            i += 6;
        } else {
            if (column == columns) {
                rows.emplace_back();
                column = 0;
                --i;
                continue;
            }
            if (row.size() <= column) row.resize(column + 1, ' ');
            row[column++] = bytes[i];
        }
    }
    return rows;
}

using Rows = std::vector<std::string>;
const int a = 0, b = 0;

// Lines that are complete pass, each with its prefix.
TEST(Screen, CompleteLinesHaveTheirPrefix) {
    Screen screen;
    EXPECT_EQ(screen.print(&a, "[0]:", "one\ntwo\n"), "[0]:one\n[0]:two\n");
    EXPECT_EQ(screen.print(&b, "[1]:", "one\n"), "[1]:one\n");
}

// A prompt is shown although its line is not complete; what another rank prints is put above it.
TEST(Screen, PromptIsShownAndStaysBelow) {
    Screen screen;
    std::string all = screen.print(&a, "[0]:", "(Pdb) ");
    EXPECT_EQ(shown(all), Rows({"[0]:(Pdb) "}));
    all += screen.print(&b, "[1]:", "hello\nhal");
    EXPECT_EQ(shown(all), Rows({"[1]:hello", "[0]:(Pdb) "}));
    all += screen.insert("ddprun: log\n");
    EXPECT_EQ(shown(all), Rows({"[1]:hello", "ddprun: log", "[0]:(Pdb) "}));
    all += screen.print(&a, "[0]:", "x\n");
    EXPECT_EQ(shown(all), Rows({"[1]:hello", "ddprun: log", "[0]:(Pdb) x", "[1]:hal"}));
    all += screen.print(&b, "[1]:", "f\n");
    EXPECT_EQ(shown(all), Rows({"[1]:hello", "ddprun: log", "[0]:(Pdb) x", "[1]:half", ""}));
}

// Bars of two ranks: one is seen, both end as whole lines.
TEST(Screen, BarsOfTwoRanksDoNotMix) {
    Screen screen;
    std::string all = screen.print(&a, "[0]:", "\r10%");
    all += screen.print(&b, "[1]:", "\r11%");
    EXPECT_EQ(shown(all), Rows({"[0]:10%"}));
    all += screen.print(&a, "[0]:", "\r20%");
    all += screen.print(&b, "[1]:", "\r21%");
    EXPECT_EQ(shown(all), Rows({"[0]:20%"}));
    all += screen.print(&b, "[1]:", "\r99%\n");
    EXPECT_EQ(shown(all), Rows({"[1]:99%", "[0]:20%"}));
    all += screen.print(&a, "[0]:", "\r98%\n");
    EXPECT_EQ(shown(all), Rows({"[1]:99%", "[0]:98%", ""}));
}

// A debugger's prompt in one rank is not hidden by the bar of another.
TEST(Screen, PromptTakesTheRowFromABar) {
    Screen screen;
    std::string all = screen.print(&a, "[0]:", "\r10%");
    all += screen.print(&b, "[1]:", "(Pdb) ");
    EXPECT_EQ(shown(all), Rows({"[1]:(Pdb) "}));
    all += screen.print(&a, "[0]:", "\r20%");
    EXPECT_EQ(shown(all), Rows({"[1]:(Pdb) "}));
    all += screen.print(&b, "[1]:", "c\n");
    EXPECT_EQ(shown(all), Rows({"[1]:(Pdb) c", "[0]:20%"}));
}

// The terminal shows what is typed after a prompt, and the end of that line. What follows has a row
// of its own.
TEST(Screen, AnsweredPromptEndsItsRow) {
    Screen screen;
    std::string all = screen.print(&a, "[0]:", "(Pdb) ");
    screen.typed(&b);
    screen.typed(&a);
    all += "p x\n";
    all += screen.print(&a, "[0]:", "41\n");
    EXPECT_EQ(shown(all), Rows({"[0]:(Pdb) p x", "[0]:41", ""}));
}

// A line that ends with \r\n is one line.
TEST(Screen, CarriageReturnBeforeNewlineIsOneLine) {
    Screen screen;
    std::string all = screen.print(&a, "[0]:", "one\r");
    all += screen.print(&a, "[0]:", "\ntwo\r\n");
    EXPECT_EQ(shown(all), Rows({"[0]:one", "[0]:two", ""}));
}

// What leaves the row is dropped, what clears it keeps the prefix; colours pass and end with the
// line. It does not matter how the bytes are cut.
TEST(Screen, SequencesStayInTheRow) {
    const std::string text = "\r\x1b[2K\x1b[1A\x1b[2K\x1b[31mred\x1b[?25l\n\x1b]0;t\aplain\n";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        Screen screen;
        std::string all = screen.print(&a, "[0]:", text.substr(0, cut));
        all += screen.print(&a, "[0]:", text.substr(cut));
        EXPECT_EQ(all.find("\x1b[1A"), std::string::npos);
        EXPECT_EQ(all.find("\x1b[?25l"), std::string::npos);
        EXPECT_NE(all.find("[0]:\x1b[31mred\x1b[0m\n"), std::string::npos) << cut;
    }
}

// Without a prefix nothing is changed while one stream writes.
TEST(Screen, WithoutPrefixBytesPassAsTheyAre) {
    Screen screen;
    const std::string text = "\x1b[1A\r\x1b[2K50%\r\ntext\x1b";
    EXPECT_EQ(screen.print(&a, "", text), text);
    EXPECT_EQ(screen.finish(&a), "");
}

// Without labels the lines of two ranks are whole.
TEST(Screen, WithoutPrefixLinesAreWhole) {
    Screen screen;
    std::string all = screen.print(&a, "", "aa");
    all += screen.print(&b, "", "bb");
    all += screen.print(&a, "", "AA\n");
    all += screen.print(&b, "", "BB\n");
    EXPECT_EQ(shown(all), Rows({"aaAA", "bbBB", ""}));
}

// A row that is wider than the terminal leaves nothing behind where it wraps.
TEST(Screen, WrappedRowIsErasedAsAWhole) {
    Screen screen;
    screen.set_columns(4);
    std::string all = screen.print(&a, "", "\x1b[1maaaabbbbcc");
    all.erase(0, 4);  // the model knows no bold
    all += screen.print(&b, "", "1\n");
    const std::size_t bold = all.find("\x1b[1m");
    ASSERT_NE(bold, all.npos);
    all.erase(bold, 4);
    EXPECT_EQ(shown(all, 4), Rows({"1", "aaaa", "bbbb", "cc"}));
    all += screen.print(&a, "", "c\n");
    EXPECT_EQ(shown(all, 4), Rows({"1", "aaaa", "bbbb", "ccc", ""}));
}

// What is too long to be drawn again is cut, and nothing of it is lost.
TEST(Screen, VeryLongRowIsCutNotLost) {
    const std::string half(10000, 'x');
    Screen screen;
    std::string all = screen.print(&a, "", half);
    all += screen.print(&a, "", half);
    all += screen.print(&b, "", "b\n");
    all += screen.print(&a, "", "end\n");
    EXPECT_EQ(shown(all), Rows({half + half, "b", "end", ""}));

    Screen other;
    all = other.print(&b, "", "prompt");
    all += other.print(&a, "", half);
    all += other.print(&a, "", half);
    all += other.print(&a, "", "end\n");
    EXPECT_EQ(shown(all), Rows({half + half, "end", "prompt"}));
}

// A stream without a prefix that ends within a row does not share it with the next one.
TEST(Screen, EndWithinARowIsEndedBeforeOthers) {
    Screen screen;
    std::string all = screen.print(&a, "", "bye");
    all += screen.finish(&a);
    EXPECT_EQ(all, "bye");
    all += screen.print(&b, "", "line\n");
    EXPECT_EQ(shown(all), Rows({"bye", "line", ""}));
}

// At the end of a stream its unfinished line gets an end.
TEST(Screen, EndOfStreamEndsTheLine) {
    Screen screen;
    std::string all = screen.print(&a, "[0]:", "one");
    all += screen.print(&b, "[1]:", "two");
    all += screen.finish(&b);
    EXPECT_EQ(shown(all), Rows({"[1]:two", "[0]:one"}));
    all += screen.finish(&a);
    EXPECT_EQ(shown(all), Rows({"[1]:two", "[0]:one", ""}));
}

}  // namespace
}  // namespace ddprun::agent
