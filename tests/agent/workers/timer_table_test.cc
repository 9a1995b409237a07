// torchrun's file timers: requests as PyTorch writes them, and which of them have expired. Pure;
// times are plain numbers.
#include "agent/workers/timer_table.h"

#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

// A request to send SIGKILL (9), PyTorch's default. A negative time releases the timer.
TimerRequest request(std::int64_t pid, const char* scope, double expires) {
    return {pid, scope, expires, 9};
}

// Every worker may write to the file, so nothing that stands in it may do harm. A request with a
// wrong field is refused as a whole: no signal may go to a pid that was misread.
TEST(TimerTable, ReadsTorchsLines) {
    const auto read = read_timer_request(
        R"({"version": 1, "pid": 7, "scope_id": "step", "expiration_time": 12.5, "signal": 15})");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->pid, 7);
    EXPECT_EQ(read->scope, "step");
    EXPECT_EQ(read->expires, 12.5);
    EXPECT_EQ(read->signal, 15);
    for (const char* bad : {"", "x", "[]", "{}", R"({"pid": "7"})",
                            R"({"pid": 7, "scope_id": 1, "expiration_time": 1, "signal": 9})"})
        EXPECT_FALSE(read_timer_request(bad)) << bad;
    // A process number that becomes another one where it is cut: 0 is our own group, 1 is init.
    for (const char* pid : {"0", "-1", "4294967297", "1e300", "7.5", "18446744073709551615"})
        EXPECT_FALSE(read_timer_request(std::string(R"({"pid": )") + pid +
                                        R"(, "scope_id": "", "expiration_time": 1, "signal": 9})"))
            << pid;
}

// A released timer never fires, or it would kill a worker whose work is done. One that is set again
// has the new time: 25, not 20.
TEST(TimerTable, FiresWhatIsNotReleased) {
    TimerTable table;
    EXPECT_EQ(table.next(), std::nullopt);
    table.take(request(1, "a", 10));
    table.take(request(2, "a", 20));
    table.take(request(2, "b", 30));
    table.take(request(1, "a", -1));
    table.take(request(2, "a", 25));
    EXPECT_EQ(table.next(), 25);
    EXPECT_TRUE(table.due(24).empty());
    ASSERT_EQ(table.due(26).size(), 1u);
    EXPECT_EQ(table.next(), std::nullopt) << "the process is killed: its other timers are void";
}

// As many timers as are kept, all of them expired: a walk over all for each would take minutes.
TEST(TimerTable, ManyThatExpireTogetherTakeNoLongerThanTheyMust) {
    TimerTable table;
    for (int pid = 1; pid <= 1000; ++pid)
        for (int scope = 0; scope < 100; ++scope)
            table.take(request(pid, std::to_string(scope).c_str(), pid));
    table.take(request(2000, "one too many", 1));
    EXPECT_EQ(table.due(500).size(), 50'000u);
    EXPECT_EQ(table.next(), 501);
    EXPECT_EQ(table.due(2000).size(), 50'000u);
    EXPECT_EQ(table.next(), std::nullopt);
}

}  // namespace
}  // namespace ddprun::agent
