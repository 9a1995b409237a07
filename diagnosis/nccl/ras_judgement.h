// Who waits for whom in a job that does not move, as NCCL's RAS has it. Pure.
//
// A rank that has launched fewer collectives of a communicator than others is what these wait for,
// unless it waits for a rank itself: then that one is. So of several communicators with ranks
// behind, the odd ranks are those that are behind in one and ahead in none. The kinds are looked
// for in this order, the first one counts:
//
//     lost       processes do not answer, have left a communicator, or report an error
//     behind     some ranks have launched fewer
//     differ     ranks are behind in one operation and ahead in another one: they made other calls
//     even       no rank is behind: all wait in the same call, or none in any
//     nothing    nothing was told
//
// One answer of a job that moves is full of ranks that are behind. So it counts only where nothing
// has moved between two (nccl_watch.h).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/nccl/ras_answer.h"

namespace ddprun::agent {

// What a process does, as far as it is told.
enum class NcclPart {
    unknown,
    waits,       // in a collective
    is_awaited,  // others wait for it
};

struct RasJudgement {
    enum class Kind { lost, behind, differ, even, nothing };
    using Process = std::pair<std::string, std::int64_t>;  // host and pid
    Kind kind = Kind::nothing;
    std::map<Process, std::string> odd;  // their operations; differ: all that are ahead
    // All other processes: of the job where they are named, else those that ask.
    NcclPart others = NcclPart::unknown;
    std::set<Process> named = {};  // in JSON all of the job; empty: nobody knows
    // "rank 12 has launched 640 AllGather operations, and 31 ranks 641"; empty: nothing can be
    // said. Ranks of the communicator of all processes are those of the job.
    std::string sentence;

    NcclPart part_of(const Process& process) const;
    // Of one that made other calls than the rest: which ones; else empty.
    std::string operation_of(const Process& process) const;
};

RasJudgement judge_ras(const RasAnswer& answer);

}  // namespace ddprun::agent
