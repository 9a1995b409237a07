// Reads from a worker of the trainer library in which collective call it is (base/call_board.h).
//
// The worker may have told any address, and may write anything there: no value is trusted. Thread:
// any. The memory may let nobody read it for a while.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "diagnosis/stacks/memory.h"

namespace ddprun::agent {

struct Calls {
    std::uint64_t count = 0;  // calls begun and ended, of all groups
    int pending = 0;          // groups in a call
    bool meets = false;       // one of them is made
    std::string text;         // the first such call: "all_reduce number 7 (4096 elements)"
};

// Nothing if there is no board at this address, or it may not be read.
std::optional<Calls> read_calls(Memory& memory, Address board);

}  // namespace ddprun::agent
