// Error, Result and DDPRUN_CHECK: what is printed, what is equal, and what a programmer's mistake
// does. Pure.
#include "base/error.h"
#include "base/failure.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>

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

// The exception of value() and of or_throw() keeps the code, so that a program can still tell a
// time-out from a wrong argument, and the sentence, so that a crash shows the first problem.
TEST(Result, ValueOfAnErrorThrowsTheError) {
    try {
        (void)half(7).value();
        FAIL() << "did not throw";
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.error(), Error(ErrorCode::malformed, "7 is odd"));
        EXPECT_EQ(failure.code(), ErrorCode::malformed);
        EXPECT_STREQ(failure.what(), "7 is odd");
    }
}

TEST(Result, IsAValueOrAnExceptionForThoseWhoPreferIt) {
    EXPECT_EQ(or_throw(half(8)), 4);
    or_throw(nothing_but(true));
    EXPECT_THROW(or_throw(nothing_but(false)), Failure);
    // A value that can only be moved.
    Result<std::unique_ptr<int>> only_one = std::make_unique<int>(5);
    EXPECT_EQ(*or_throw(std::move(only_one)), 5);
}

// The check works in release builds too, where assert() does nothing.
TEST(Check, EndsTheProcessAndNamesTheCondition) {
    DDPRUN_CHECK(1 + 1 == 2, "never said");
    EXPECT_DEATH(DDPRUN_CHECK(1 + 1 == 3, "arithmetic is broken"),
                 "arithmetic is broken \\(1 \\+ 1 == 3\\)");
}
