// In which collective call a worker of the trainer library is, from its memory.
#include "diagnosis/standstill/call_reader.h"

#include <gtest/gtest.h>
#include <string.h>

#include "base/call_board.h"

namespace ddprun::agent {
namespace {

constexpr Address kAt = 0x1000;

// Has a board at kAt, and nothing else.
class BoardMemory : public Memory {
  public:
    bool read(Address from, void* to, std::size_t size) override {
        if (from != kAt || size > sizeof board) return false;
        memcpy(to, &board, size);
        return true;
    }
    // A call of a group, which goes on.
    void call(std::size_t group, std::uint64_t kind, std::uint64_t number,
              std::uint64_t elements = 0, std::int64_t peer = -1) {
        GroupCall& entry = board.groups[group];
        entry.kind = kind;
        entry.number = number;
        entry.elements = elements;
        entry.peer = peer;
        ++entry.begun;
    }
    CallBoard board;
};

TEST(CallReader, TellsTheCallThatIsUnderWay) {
    BoardMemory memory;
    EXPECT_EQ(read_calls(memory, kAt)->pending, 0);
    memory.call(0, 0, 7, 4096);
    const auto inside = read_calls(memory, kAt);
    ASSERT_TRUE(inside);
    EXPECT_EQ(inside->pending, 1);
    EXPECT_EQ(inside->text, "all_reduce number 7 (4096 elements)");
    EXPECT_FALSE(inside->meets);
    ++memory.board.groups[0].ended;
    const auto outside = read_calls(memory, kAt);
    EXPECT_EQ(outside->pending, 0);
    EXPECT_EQ(outside->text, "");
    EXPECT_GT(outside->count, inside->count);
}

TEST(CallReader, NamesThePeerOfACallBetweenTwo) {
    BoardMemory memory;
    memory.call(3, 9, 2, 10, 5);
    EXPECT_EQ(read_calls(memory, kAt)->text, "receive number 2 (10 elements) with rank 5");
}

TEST(CallReader, KnowsWhoMeetsTheOthers) {
    BoardMemory memory;
    memory.call(0, kMeetingCall, 0);
    EXPECT_TRUE(read_calls(memory, kAt)->meets);
    EXPECT_EQ(read_calls(memory, kAt)->text, "make_process_group");
}

// The worker may be any program: another address, another version, numbers out of range.
TEST(CallReader, TrustsNothing) {
    BoardMemory memory;
    EXPECT_FALSE(read_calls(memory, kAt + 8));
    memory.call(0, ~0ULL, ~0ULL, ~0ULL, -7);
    EXPECT_EQ(read_calls(memory, kAt)->text,
              "a call number 18446744073709551615 (18446744073709551615 elements)");
    memory.board.mark = 1;
    EXPECT_FALSE(read_calls(memory, kAt));
}

}  // namespace
}  // namespace ddprun::agent
