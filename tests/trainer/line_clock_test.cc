// The time between two lines of progress, from which their rates come (examples/line_clock.h).
#include "examples/line_clock.h"

#include <gtest/gtest.h>

using example::LineClock;

TEST(LineClock, CountsFromLineToLine) {
    LineClock clock;
    clock.begin(100);
    EXPECT_DOUBLE_EQ(clock.lap(102), 2);
    EXPECT_DOUBLE_EQ(clock.lap(105), 3);
}

// A step takes a second, and each fifth has a line. The validation of 7 s after the third is in no
// line: it makes no rate too low, and it does not begin the time anew, with which five steps would
// be counted in the time of two.
TEST(LineClock, LeavesAValidationOut) {
    LineClock clock;
    clock.begin(0);
    clock.leave_out(7);  // from 3 to 10
    EXPECT_DOUBLE_EQ(clock.lap(12), 5);
    EXPECT_DOUBLE_EQ(clock.lap(17), 5);
}

// Two lines in one tick of the clock: rates divide by this.
TEST(LineClock, IsNeverZero) {
    LineClock clock;
    clock.begin(5);
    EXPECT_GT(clock.lap(5), 0);
    clock.leave_out(1);
    EXPECT_GT(clock.lap(5), 0);
}
