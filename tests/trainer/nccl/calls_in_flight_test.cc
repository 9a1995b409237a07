// Which call is late, and to which one a failure belongs.
#include "trainer/nccl/calls_in_flight.h"

#include <gtest/gtest.h>

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr CallsInFlight::Time kStart{};
CallsInFlight::Time at(milliseconds when) { return kStart + seconds(1000) + when; }

// The second call waits behind the first one, so its time begins when that one has ended.
TEST(CallsInFlight, CountsTheTimeOfTheOneThatRuns) {
    CallsInFlight calls(seconds(5));
    const auto first = calls.begin(Operation::barrier(), at(seconds(0)));
    calls.begin(Operation::barrier(), at(seconds(0)));
    EXPECT_FALSE(calls.overdue(at(seconds(5))));
    EXPECT_TRUE(calls.overdue(at(milliseconds(5001))));
    calls.ended(first, at(seconds(4)));
    EXPECT_FALSE(calls.overdue(at(seconds(9))));
    ASSERT_TRUE(calls.overdue(at(milliseconds(9001))));
    EXPECT_EQ(calls.overdue(at(seconds(10)))->sentence(), "timed out after 5000 ms");
}

// A call that began long after the last one ended has its whole time.
TEST(CallsInFlight, GivesALaterCallItsOwnTime) {
    CallsInFlight calls(seconds(5));
    calls.ended(calls.begin(Operation::barrier(), at(seconds(0))), at(seconds(1)));
    EXPECT_EQ(calls.oldest(), nullptr);
    EXPECT_FALSE(calls.overdue(at(seconds(100))));
    calls.begin(Operation::barrier(), at(seconds(100)));
    EXPECT_FALSE(calls.overdue(at(seconds(105))));
}

// The end of a call is the end of those before it.
TEST(CallsInFlight, EndsCallsUpToATicket) {
    CallsInFlight calls(seconds(5));
    calls.begin(Operation::barrier(), kStart);
    const auto second = calls.begin(Operation::barrier(), kStart);
    const auto third = calls.begin(Operation::barrier(), kStart);
    calls.ended(second, kStart);
    ASSERT_NE(calls.oldest(), nullptr);
    EXPECT_EQ(calls.oldest()->ticket, third);
}

// A failure that has no call of its own is that of the oldest; a launch that failed is its own.
TEST(CallsInFlight, NamesTheCallThatFailed) {
    CallsInFlight calls(seconds(5));
    EXPECT_EQ(calls.failed(0), nullptr);
    const auto first = calls.begin(Operation::barrier(), kStart);
    const auto second = calls.begin(Operation::barrier(), kStart);
    EXPECT_EQ(calls.failed(0)->ticket, first);
    EXPECT_EQ(calls.failed(second)->ticket, second);
    calls.ended(first, kStart);
    EXPECT_EQ(calls.failed(first)->ticket, second);
}

// Once a second, from a second after the call began to run.
TEST(CallsInFlight, LooksAtOthersNowAndThen) {
    CallsInFlight calls(seconds(60));
    EXPECT_FALSE(calls.look_at_others(at(seconds(0))));
    const auto first = calls.begin(Operation::barrier(), at(seconds(0)));
    EXPECT_FALSE(calls.look_at_others(at(milliseconds(999))));
    EXPECT_TRUE(calls.look_at_others(at(seconds(1))));
    EXPECT_FALSE(calls.look_at_others(at(milliseconds(1999))));
    EXPECT_TRUE(calls.look_at_others(at(seconds(2))));
    calls.begin(Operation::barrier(), at(seconds(2)));
    calls.ended(first, at(milliseconds(2500)));
    EXPECT_FALSE(calls.look_at_others(at(seconds(3))));
    EXPECT_TRUE(calls.look_at_others(at(milliseconds(3500))));
}

}  // namespace
}  // namespace ddprun::trainer
