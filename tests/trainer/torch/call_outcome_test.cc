// How waiting for libtorch's Gloo ends: with the calls, with the first failure, or soon after a cut
// although the calls never end.
#include "trainer/torch/call_outcome.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;

// A group that is cut, or becomes so when the store is asked.
struct FakeGroup {
    std::atomic<bool> cut = false;
    bool others_have_failed = false;
    int asked = 0;

    CallOutcome::Group state() {
        return {[this] { return cut.load(); },
                [this] {
                    ++asked;
                    if (others_have_failed) cut = true;
                }};
    }
};

// Two calls end in other threads; the wait lasts until both have.
TEST(CallOutcome, WaitsForAllCalls) {
    FakeGroup group;
    CallOutcome outcome(2);
    std::atomic<int> ended = 0;
    std::thread one([&] { ++ended, outcome.end(nullptr); });
    std::thread two([&] { ++ended, outcome.end(nullptr); });
    outcome.wait(group.state());
    EXPECT_EQ(ended, 2);
    one.join();
    two.join();
}

// The first failure is thrown, although the second call never ends.
TEST(CallOutcome, ThrowsTheFirstFailure) {
    FakeGroup group;
    CallOutcome outcome(2);
    outcome.end(std::make_exception_ptr(std::out_of_range("first")));
    EXPECT_THROW(outcome.wait(group.state()), std::out_of_range);
}

// Another rank has failed: the store says so, the connections are cut, and libtorch's Gloo has
// forgotten its send. The wait ends all the same.
TEST(CallOutcome, GivesUpAfterTheCut) {
    FakeGroup group;
    group.others_have_failed = true;
    CallOutcome outcome(1);
    EXPECT_THROW(outcome.wait(group.state(), milliseconds(20)), GivenUp);
    EXPECT_TRUE(group.cut);
    EXPECT_EQ(group.asked, 1);
}

// abort() of another thread has cut the group. The store is not asked then: it may be gone.
TEST(CallOutcome, DoesNotAskAfterAnAbort) {
    FakeGroup group;
    group.cut = true;
    CallOutcome outcome(1);
    EXPECT_THROW(outcome.wait(group.state(), milliseconds(1)), GivenUp);
    EXPECT_EQ(group.asked, 0);
}

// A call that fails after the cut, as it usually does, is not taken for one that was forgotten.
TEST(CallOutcome, TakesAFailureAfterTheCut) {
    FakeGroup group;
    CallOutcome outcome(1);
    CallOutcome::Group state{[&] {
                                 outcome.end(std::make_exception_ptr(std::out_of_range("cut")));
                                 return true;
                             },
                             [] {}};
    EXPECT_THROW(outcome.wait(state, std::chrono::minutes(10)), std::out_of_range);
}

}  // namespace
}  // namespace ddprun::trainer
