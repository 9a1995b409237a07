// The calls of collectives that workers have made, as PyTorch's flight recorders have them
// (diagnosis/recorder). A node tells them in its answer to Examine, and the leader compares those
// of all ranks (hangs/call_mismatch.h). Pure values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::rendezvous {

// Of one process group. The recorder numbers its calls from 1 on, and all ranks of a group should
// make the same one under the same number.
struct RecordedCalls {
    std::vector<int> ranks;          // that have recorded all of this alike, in ascending order
    std::string group;               // "group 0 (default_pg, gloo)"
    std::int64_t last = 0;           // the number of the newest call
    std::int64_t first = 0;          // the number of calls.front()
    std::vector<std::string> calls;  // "all_reduce of [4160] Float"; empty: not recorded
    std::int64_t waits_in = 0;       // the oldest one that has not ended; 0: none
    bool operator==(const RecordedCalls&) const = default;
};

// What a Report tells at most: 128 KiB of texts.
inline constexpr std::size_t kRecordsTold = 64, kCallsTold = 16, kCallText = 128;

}  // namespace ddprun::rendezvous
