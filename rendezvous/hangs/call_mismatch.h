// Compares the calls of collectives that all ranks have recorded. Pure functions.
//
// In each process group the ranks must make the same calls in the same order. So what keeps them
// waiting is
//
//     the first number under which the calls of two ranks differ,
//     or else the first number that some ranks have not reached, if others wait in it or behind it.
//
// Calls that are older than the oldest one in which a rank waits have ended for all, so they do not
// count. Only those around the place where a rank waits are known (model/recorded_calls.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"
#include "rendezvous/model/recorded_calls.h"

namespace ddprun::rendezvous {

struct CallMismatch {
    // Ranks that have made the same call. Its text is empty if it is not known.
    struct Side {
        std::string call;
        std::vector<int> ranks;
        bool operator==(const Side&) const = default;
    };
    std::string group;
    std::int64_t number = 0;
    std::vector<Side> sides;   // who has made which call, the fewest ranks first
    std::vector<int> missing;  // who has not made it; then there is one side
    bool operator==(const CallMismatch&) const = default;
};

// At most one for each group. Those in which calls differ come first.
std::vector<CallMismatch> call_mismatches(const std::vector<RecordedCalls>& recorded);

// Says "rank 1 (local 1 on n17)".
using RankName = std::function<std::string(int rank)>;
// The end of a sentence, with what the recorders of `world_size` ranks say: for example "; as
// PyTorch's flight recorders have it, call 11 of group 0 (default_pg, gloo) is barrier on rank 1
// (local 1 on n17), and all_reduce of [1048576] Float on 2 ranks", or "…, all have made the same
// calls". Empty: nothing can be said.
std::string recorded_sentence(const std::vector<RecordedCalls>& recorded, int world_size,
                              const RankName& name);

// "; as NCCL has it, rank 12 has launched 640 AllGather operations, and 31 ranks 641": what a node
// tells of its NCCL in a line below the functions of a worker ("NCCL: rank 12 …"). Empty: none
// does.
std::string nccl_sentence(const std::map<int, WorkerOutcome>& seen);

}  // namespace ddprun::rendezvous
