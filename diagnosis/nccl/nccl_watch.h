// What the answers of RAS say of this node's workers over time: whether anything moves, and if not,
// who waits and who is awaited. Pure.
//
//     asked when a worker may stand still ──counts as before──▶ still, since the last move
//          ▲──────────── counts have changed, or no answer ───────────┘
//
// Many processes are gathered by RAS for each answer, so it is asked less often in a large job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "diagnosis/nccl/ras_judgement.h"

namespace ddprun::agent {

// Of one worker.
struct NcclState {
    NcclPart part = NcclPart::unknown;
    Time moved_at{};          // of the whole job, as far as it is told
    Duration usual{};         // the job usually goes so long between two moves
    std::string operation{};  // others have made other calls; empty: it is not so
};

class NcclWatch {
  public:
    // When to ask next. After an answer two seconds later, or 50 ms for each process of the job;
    // while nobody answers, twice as late each time, up to a minute.
    bool is_due(Time now) const { return now >= asks_at_; }
    void unanswered(Time now);
    void answered(Time now, const RasAnswer& answer);
    bool is_known() const { return known_; }
    // Nothing has moved between the last two answers. What the last one says then.
    bool is_still() const { return still_; }
    const std::string& sentence() const { return judged_.sentence; }

    // Of each worker, by its pid; `hosts`: the addresses of this host.
    std::vector<NcclState> states(const std::vector<std::int64_t>& pids,
                                  const std::vector<std::string>& hosts) const;

  private:
    using Launched = std::map<std::pair<std::string, std::string>, std::uint64_t>;
    Launched launched_;  // by communicator and operation, of all ranks together
    RasJudgement judged_;
    bool known_ = false, still_ = false;
    Time moved_at_{}, asks_at_{};
    Duration usual_{}, waits_{};
};

}  // namespace ddprun::agent
