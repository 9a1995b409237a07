#include "agent/workers/keyboard_line.h"

#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

const std::map<std::int64_t, int> kRanks{{10, 0}, {11, 1}, {12, 2}, {13, 3}, {14, 4}, {15, 5}};

// The line names who has the keyboard, and at most three that wait.
TEST(KeyboardLine, NamesHolderAndWaiting) {
    Keyboard keyboard;
    EXPECT_EQ(keyboard_line(keyboard, true, kRanks), "");
    keyboard.asks(11, true);
    EXPECT_EQ(keyboard_line(keyboard, true, kRanks), "rank 1 has the keyboard");
    keyboard.asks(10, true);
    EXPECT_EQ(keyboard_line(keyboard, true, kRanks),
              "rank 1 has the keyboard; rank 0 waits for it");
    keyboard.asks(12, true);
    EXPECT_EQ(keyboard_line(keyboard, true, kRanks),
              "rank 1 has the keyboard; ranks 0 and 2 wait for it");
    for (const int pid : {13, 14, 15}) keyboard.asks(pid, true);
    EXPECT_EQ(keyboard_line(keyboard, true, kRanks),
              "rank 1 has the keyboard; ranks 0, 2, 3 and 2 more wait for it");
}

// In the background the line says what to type.
TEST(KeyboardLine, InTheBackgroundNamesFg) {
    Keyboard keyboard;
    keyboard.asks(11, false);
    EXPECT_EQ(keyboard_line(keyboard, false, kRanks),
              "rank 1 waits for the keyboard, but ddprun runs in the background: fg");
}

}  // namespace
}  // namespace ddprun::agent
