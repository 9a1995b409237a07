#include "keeper/keyboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

void look(Keyboard& keyboard, int times, bool reads = false) {
    for (int i = 0; i < times; ++i) keyboard.looked(reads, true);
}
constexpr int kSome = Keyboard::kIdleLooks - 1;

using testing::ElementsAre;
using testing::IsEmpty;

// The first that asks gets it, the next one when the first has not read for some looks.
TEST(Keyboard, GoesToTheNextWhenTheHolderReadsNoMore) {
    Keyboard keyboard;
    keyboard.asks(1, true);
    keyboard.asks(2, true);
    keyboard.asks(2, true);
    EXPECT_EQ(keyboard.holder(), 1);
    EXPECT_THAT(keyboard.waiting(), ElementsAre(2));
    look(keyboard, kSome);
    look(keyboard, 1, true);
    look(keyboard, kSome);
    EXPECT_EQ(keyboard.holder(), 1) << "it has read in between";
    look(keyboard, 1);
    EXPECT_EQ(keyboard.holder(), 2);
    EXPECT_THAT(keyboard.waiting(), IsEmpty());
}

// When nobody reads, Ctrl-C is for ddprun.
TEST(Keyboard, ReturnsToDdprun) {
    Keyboard keyboard;
    keyboard.asks(1, true);
    look(keyboard, kSome);
    EXPECT_EQ(keyboard.holder(), 1);
    look(keyboard, 1);
    EXPECT_EQ(keyboard.holder(), 0);
    EXPECT_FALSE(keyboard.is_used());
}

// A worker that ends neither keeps the keyboard nor gets it.
TEST(Keyboard, EndedWorkersHaveNoPart) {
    Keyboard keyboard;
    for (const int pid : {1, 2, 3}) keyboard.asks(pid, true);
    keyboard.ended(2);
    keyboard.ended(1);
    keyboard.looked(false, true);
    EXPECT_EQ(keyboard.holder(), 3);
}

// In the background nobody gets it, until ddprun is in the foreground.
TEST(Keyboard, NobodyHasItInTheBackground) {
    Keyboard keyboard;
    keyboard.asks(1, false);
    EXPECT_EQ(keyboard.holder(), 0);
    keyboard.looked(false, true);
    EXPECT_EQ(keyboard.holder(), 1);
    keyboard.asks(1, false);  // continued by `bg`, and stopped again
    keyboard.looked(false, false);
    EXPECT_EQ(keyboard.holder(), 0);
    EXPECT_THAT(keyboard.waiting(), ElementsAre(1));
}

}  // namespace
}  // namespace ddprun::agent
