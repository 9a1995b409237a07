// The text of a worker as lines, and how they are printed: to a file, a terminal and a program.
#include "operator/ddpctl/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ddprun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

LogLine out(const std::string& text, const std::string& end = "\n") { return {false, text, end}; }
LogLine err(const std::string& text, const std::string& end = "\n") { return {true, text, end}; }

TEST(LogLines, PutsTheStreamsTogetherEachForItself) {
    LogLines lines;
    EXPECT_THAT(lines.take(false, "one\ntw"), ElementsAre(out("one")));
    EXPECT_THAT(lines.take(true, "warning\n"), ElementsAre(err("warning")));
    EXPECT_THAT(lines.take(false, "o\r\n  5%\r 10%\r"),
                ElementsAre(out("two", "\r\n"), out("  5%", "\r")));
    EXPECT_THAT(lines.take(false, "\n"), ElementsAre(out(" 10%", "\r\n")));
    EXPECT_THAT(lines.take(true, "rest"), IsEmpty());
    EXPECT_THAT(lines.unfinished(), ElementsAre(err("rest", "")));
    EXPECT_THAT(lines.unfinished(), IsEmpty());
}

TEST(LogLines, GivesALongLineInParts) {
    LogLines lines;
    const auto parts = lines.take(false, std::string(150 << 10, 'x'));
    ASSERT_EQ(parts.size(), 2);
    EXPECT_EQ(parts[0], out(std::string(LogLines::kLongest, 'x'), ""));
    EXPECT_THAT(lines.take(false, "\n"), ElementsAre(out(std::string(22 << 10, 'x'))));
}

// However it comes: every byte once, and the same lines.
TEST(LogLines, LosesNothingWhateverThePiecesAre) {
    std::mt19937 random(7);
    std::string text;
    for (int i = 0; i < 5000; ++i) text += "ab\r\n\n\r\x1b "[random() % 8];
    std::vector<LogLine> whole = LogLines().take(false, text);
    for (int round = 0; round < 20; ++round) {
        LogLines lines;
        std::vector<LogLine> all;
        std::string joined;
        for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
            size = 1 + random() % 40;
            for (LogLine& line : lines.take(false, std::string_view(text).substr(at, size)))
                all.push_back(std::move(line));
        }
        EXPECT_EQ(all, whole);
        for (LogLine& line : lines.unfinished()) all.push_back(std::move(line));
        for (const LogLine& line : all) joined += line.text + line.end;
        EXPECT_EQ(joined + (text.ends_with('\r') ? "\r" : ""), text);
    }
}

std::string printed(LogForm form, const std::vector<LogLine>& lines) {
    LogPrinter printer(form);
    printer.begin("n2", 1, 3);
    std::string text;
    for (const LogLine& line : lines) text += printer.text(line);
    return text + printer.break_line();
}

// Every byte as it came, and no line of the other stream within a line.
TEST(LogPrinter, WritesToAFileWhatTheWorkerWrote) {
    EXPECT_EQ(printed(LogForm::plain, {out("\x1b[31mred\x1b[0m", "\r\n"), out("a", ""), out("b"),
                                       err("c", ""), out(std::string("d\0e", 3))}),
              std::string("\x1b[31mred\x1b[0m\r\nab\nc\nd\0e\n", 23));
}

// Neither the title of the window, nor the lines above, nor a line that looks like ddpctl's own.
TEST(LogPrinter, LetsNoWorkerControlATerminal) {
    const std::string text =
        printed(LogForm::terminal, {out("\x1b]0;owned\x07\x1b[2J\x1b[1;1Hroot@host:~# "),
                                    err("\x9b"
                                        "31m"),
                                    out("ddpctl: rank 1 has ended"), out("\u202egnp.exe")});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\x07")));
    EXPECT_THAT(text, Not(HasSubstr("\x9b")));
    EXPECT_EQ(text,
              "[n2:1]:\\x1b]0;owned\\x07\\x1b[2J\\x1b[1;1Hroot@host:~# \n"
              "[n2:1]:\\x9b31m\n"
              "[n2:1]:ddpctl: rank 1 has ended\n"
              "[n2:1]:\\u202egnp.exe\n");
}

// A bar stays in its line, and what stands there next has no rest of it. Nothing else moves the
// cursor.
TEST(LogPrinter, ShowsAProgressBarInItsLine) {
    EXPECT_EQ(printed(LogForm::terminal, {out(" 5%", "\r"), out("10%", "\r"), err("warning"),
                                          out("15", ""), out("%")}),
              "[n2:1]: 5%\r\x1b[K[n2:1]:10%\r\x1b[K[n2:1]:warning\n[n2:1]:15%\n");
}

TEST(LogPrinter, BeginsANewLineForItsOwnSentences) {
    EXPECT_EQ(printed(LogForm::terminal, {out("half", "")}), "[n2:1]:half\n");
    EXPECT_EQ(printed(LogForm::terminal, {out("50%", "\r")}), "[n2:1]:50%\r\n");
    EXPECT_EQ(printed(LogForm::plain, {out("whole")}), "whole\n");
}

TEST(LogPrinter, PrintsAnObjectALine) {
    EXPECT_EQ(
        printed(LogForm::json, {err("loss \"nan\"\x1b\xff"), out("half", "")}),
        R"({"rank":1,"generation":3,"node":"n2","stream":"stderr","line":"loss \"nan\")"
        "\\u001b\xef\xbf\xbd\"}\n"
        R"({"rank":1,"generation":3,"node":"n2","stream":"stdout","line":"half","unfinished":true})"
        "\n");
    LogPrinter printer(LogForm::json);
    printer.begin("n2", 1, 3);
    EXPECT_EQ(
        printer.note("lost", "7 lines are missing", 7, 90),
        R"({"rank":1,"generation":3,"node":"n2","event":"lost","lost_lines":7,"lost_bytes":90,)"
        R"("sentence":"7 lines are missing"})"
        "\n");
    EXPECT_EQ(LogPrinter(LogForm::plain).note("lost", "7 lines are missing"), "");
}

}  // namespace
}  // namespace ddprun::launcher
