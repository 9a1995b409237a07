// Copies a board in one go, then looks at the copy.
#include "diagnosis/standstill/call_reader.h"

#include <array>
#include <iterator>

#include "base/call_board.h"

namespace ddprun::agent {
namespace {

// As many numbers as a CallBoard has, in its order.
static_assert(sizeof(CallBoard) == sizeof(std::uint64_t) * (1 + 6 * kCallGroups));
struct GroupNumbers {
    std::uint64_t begun, ended, number, elements;
    std::int64_t peer;
    std::uint64_t kind;
};
struct BoardNumbers {
    std::uint64_t mark;
    std::array<GroupNumbers, kCallGroups> groups;
};
static_assert(sizeof(BoardNumbers) == sizeof(CallBoard));

std::string text_of(const GroupNumbers& call) {
    const std::string name =
        call.kind < std::size(kCallNames) ? kCallNames[call.kind] : std::string("a call");
    if (call.kind == kMeetingCall) return name;
    std::string text = name + " number " + std::to_string(call.number);
    if (call.elements > 0) text += " (" + std::to_string(call.elements) + " elements)";
    if (call.peer >= 0) text += " with rank " + std::to_string(call.peer);
    return text;
}

}  // namespace

std::optional<Calls> read_calls(Memory& memory, Address board) {
    const auto numbers = memory.value<BoardNumbers>(board);
    if (!numbers || numbers->mark != CallBoard::kMark) return std::nullopt;
    Calls calls;
    for (const GroupNumbers& call : numbers->groups) {
        calls.count += call.begun + call.ended;
        if (call.begun == call.ended) continue;
        ++calls.pending;
        calls.meets |= call.kind == kMeetingCall;
        if (calls.text.empty()) calls.text = text_of(call);
    }
    return calls;
}

}  // namespace ddprun::agent
