// What of a stranger's text reaches a terminal and a log file.
#include "base/printable.h"

#include <gtest/gtest.h>

namespace ddprun {
namespace {

TEST(Printable, LeavesPlainText) {
    EXPECT_EQ(printable("node gpu03 is gone: 3 µs, 50 % \"C:\\x\"\tend"),
              "node gpu03 is gone: 3 µs, 50 % \"C:\\x\"\tend");
    EXPECT_EQ(printable("日本語 😀"), "日本語 😀");
    EXPECT_EQ(printable(""), "");
}

// A version such as "1\nddprun: job done" would forge a line; ESC ] 0 ; sets a terminal's title,
// and 0x9b is ESC [ in one byte.
TEST(Printable, LetsNoTextForgeALineOrCommandATerminal) {
    EXPECT_EQ(printable("1\nddprun: done\r"), "1\\nddprun: done\\r");
    EXPECT_EQ(printable("\x1b]0;owned\x07"), "\\x1b]0;owned\\x07");
    EXPECT_EQ(printable("\xc2\x9b"
                        "2J"),
              "\\x9b2J");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
    EXPECT_EQ(printable("\x7f"), "\\x7f");
    EXPECT_EQ(printable("\xe2\x80\xa8|\xe2\x80\xae|"), "\\u2028|\\u202e|");
}

// Bytes that are no UTF-8: cut, too long, half of a pair, beyond Unicode.
TEST(Printable, ShowsBytesThatAreNoText) {
    EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
    EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");
    EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
    EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
    EXPECT_EQ(printable("\xf0\x9f\x98"), "\\xf0\\x9f\\x98");
}

// Programs colour their errors. Anything else that looks like a colour is shown.
TEST(Printable, LeavesColoursOut) {
    EXPECT_EQ(printable("\x1b[1;31merror\x1b[0m: no"), "error: no");
    EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
    EXPECT_EQ(printable("\x1b["), "\\x1b[");
}

}  // namespace
}  // namespace ddprun
