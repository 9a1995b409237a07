// What a worker tells of its calls, read where ddprun reads it. The address comes once, on the
// progress descriptor.
#include "trainer/group/call_teller.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

namespace ddprun::trainer {
namespace {

// The board of this process.
const CallBoard& board() {
    static const CallBoard* const only = [] {
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        setenv("DDPRUN_PROGRESS_FD", std::to_string(ends[1]).c_str(), 1);
        { const CallTeller first, second; }
        unsetenv("DDPRUN_PROGRESS_FD");
        close(ends[1]);
        char line[100] = "";
        const ssize_t got = read(ends[0], line, sizeof line - 1);
        EXPECT_GT(got, 0);
        const std::string text(line);
        EXPECT_TRUE(text.starts_with("ddprun_calls=")) << text;
        EXPECT_TRUE(text.ends_with(" pid=" + std::to_string(getpid()) + "\n")) << text;
        EXPECT_EQ(text.find('\n'), text.size() - 1) << "once";
        close(ends[0]);
        return reinterpret_cast<const CallBoard*>(std::stoull(text.substr(13)));
    }();
    return *only;
}

TEST(CallTeller, TellsACallFromItsBeginningToItsEnd) {
    ASSERT_EQ(board().mark, CallBoard::kMark);
    const GroupCall& entry = board().groups[0];
    EXPECT_EQ(entry.begun, entry.ended);
    CallTeller teller;
    std::vector<float> values(10);
    Operation operation = Operation::receive(buffer_of(std::span(values)), 3);
    operation.sequence = 7;
    {
        const CallTeller::Call call(teller, operation);
        EXPECT_EQ(entry.begun, entry.ended + 1);
        EXPECT_STREQ(kCallNames[entry.kind], "receive");
        EXPECT_EQ(entry.number, 7u);
        EXPECT_EQ(entry.elements, 10u);
        EXPECT_EQ(entry.peer, 3);
    }
    EXPECT_EQ(entry.begun, entry.ended);
    operation = Operation::all_reduce(buffer_of(std::span(values)));
    const CallTeller::Call call(teller, operation);
    EXPECT_STREQ(kCallNames[entry.kind], "all_reduce");
    EXPECT_EQ(entry.peer, -1);
}

// The names are those of the operations, in their order.
TEST(CallTeller, NamesEveryOperation) {
    Operation operation = Operation::monitored_barrier();
    EXPECT_STREQ(kCallNames[static_cast<std::size_t>(operation.kind)], "monitored_barrier");
    EXPECT_STREQ(kCallNames[static_cast<std::size_t>(Collective::all_to_all)], "all_to_all");
    EXPECT_STREQ(kCallNames[static_cast<std::size_t>(Collective::exchange)], "exchange");
    EXPECT_STREQ(kCallNames[kMeetingCall], "make_process_group");
    EXPECT_STREQ(kCallNames[kSplitCall], "split");
}

// A ninth group has no entry. Its calls are not told, and harm nobody.
TEST(CallTeller, HasRoomForEightGroups) {
    std::vector<std::unique_ptr<CallTeller>> tellers;
    for (std::size_t i = 0; i < kCallGroups + 1; ++i)
        tellers.push_back(std::make_unique<CallTeller>());
    const auto pending = [] {
        std::size_t count = 0;
        for (const GroupCall& entry : board().groups) count += entry.begun != entry.ended;
        return count;
    };
    {
        std::vector<std::unique_ptr<CallTeller::Call>> calls;
        for (const auto& teller : tellers)
            calls.push_back(std::make_unique<CallTeller::Call>(*teller, Operation::barrier()));
        EXPECT_EQ(pending(), kCallGroups);
    }
    EXPECT_EQ(pending(), 0u);
    tellers.front().reset();
    CallTeller another;
    const CallTeller::Call call(another, Operation::barrier());
    EXPECT_EQ(pending(), 1u) << "its entry is free again";
}

}  // namespace
}  // namespace ddprun::trainer
