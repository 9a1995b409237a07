// Error, Result and DDPRUN_CHECK: what is printed, what is equal, and what a programmer's mistake
// does. Pure.
#include "base/error.h"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

using namespace ddprun;

namespace {

Result<int> half(int number) {
    if (number % 2) return Error(ErrorCode::malformed, std::to_string(number) + " is odd");
    return number / 2;
}

Result<> nothing_but(bool good) {
    if (!good) return Error(ErrorCode::refused, "not wanted");
    return {};
}

}  // namespace

TEST(Error, PrintsItsCodeAndSentence) {
    std::ostringstream out;
    out << Error(ErrorCode::timed_out, "no answer in 5.0 s");
    EXPECT_EQ(out.str(), "timed_out: no answer in 5.0 s");
}

// Users search logs for these names, so each code has a name of its own, and the names stay.
TEST(Error, NamesEachCode) {
    const std::pair<ErrorCode, const char*> names[] = {{ErrorCode::internal, "internal"},
                                                       {ErrorCode::usage, "usage"},
                                                       {ErrorCode::unavailable, "unavailable"},
                                                       {ErrorCode::timed_out, "timed_out"},
                                                       {ErrorCode::exists, "exists"},
                                                       {ErrorCode::not_found, "not_found"},
                                                       {ErrorCode::malformed, "malformed"},
                                                       {ErrorCode::refused, "refused"},
                                                       {ErrorCode::closed, "closed"}};
    for (const auto& [code, name] : names) EXPECT_STREQ(to_string(code), name);
}

TEST(Error, IsEqualByCodeAndSentence) {
    EXPECT_EQ(Error(ErrorCode::usage, "x"), Error(ErrorCode::usage, "x"));
    EXPECT_NE(Error(ErrorCode::usage, "x"), Error(ErrorCode::usage, "y"));
    EXPECT_NE(Error(ErrorCode::usage, "x"), Error(ErrorCode::closed, "x"));
}

TEST(Result, HoldsAValueOrAnError) {
    ASSERT_TRUE(half(8));
    EXPECT_EQ(*half(8), 4);
    ASSERT_FALSE(half(7));
    EXPECT_EQ(half(7).error(), Error(ErrorCode::malformed, "7 is odd"));
    EXPECT_TRUE(nothing_but(true));
    EXPECT_EQ(nothing_but(false).error().code(), ErrorCode::refused);
}

// value() of an error is a mistake in our own code. The exception is a logic_error, which no
// handler of ddprun expects, so the process ends. The sentence is in it, so the crash still shows
// the first problem.
TEST(Result, ValueOfAnErrorThrowsWithItsSentence) {
    try {
        half(7).value();
        FAIL() << "did not throw";
    } catch (const std::logic_error& error) {
        EXPECT_STREQ(error.what(), "value() of a failed result: 7 is odd");
    }
}

// The check works in release builds too, where assert() does nothing.
TEST(Check, EndsTheProcessAndNamesTheCondition) {
    DDPRUN_CHECK(1 + 1 == 2, "never said");
    EXPECT_DEATH(DDPRUN_CHECK(1 + 1 == 3, "arithmetic is broken"),
                 "arithmetic is broken \\(1 \\+ 1 == 3\\)");
}
