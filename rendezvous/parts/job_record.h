// What each ledger entry says of the job's past, so that whoever leads next decides as this leader
// would: restarts and crash loops (restart_policy.h), nodes that fail again and again (blame.h),
// and what restarts have cost (restart_times.h).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/rules/blame.h"
#include "rendezvous/rules/generation_facts.h"
#include "rendezvous/rules/restart_policy.h"
#include "rendezvous/rules/restart_times.h"

namespace ddprun::rendezvous {

class JobRecord {
  public:
    // ---- the ledger's newest entry
    // Another leader wrote it; `same`: it is of the generation that was known before.
    void adopt(const LedgerEntry& entry, bool same);
    // This leader wrote it, and it makes a generation. Returns what is to be said of nodes that are
    // blamed from now on.
    std::vector<std::string> began(const LedgerEntry& entry);
    // Fills in an entry that is proposed now. `first`: the ledger has none yet.
    void write(LedgerEntry& entry, Time now, bool first, const Blame& blame, bool progressed);

    // ---- the newest generation
    void heard(const NodeId& node, const Marks& marks, Time now) { times_.heard(node, marks, now); }
    // It has failed at `since`, and this leader knows it now. The first call counts.
    void ended(Time since, Time now) { times_.ended(since, now); }
    // Whether its failure was judged already; then the judgement.
    bool is_judged() const { return judged_; }
    void judged() { judged_ = true; }
    RestartDecision decide(const WorkerOutcome& failure, bool progressed, const Limits& limits) {
        return decide_restart(history_, failure, progressed, limits);
    }
    // It has ended because of a worker on this node.
    void ended_by(const std::string& node) { culprit_ = node; }
    // The blame that follows from its end.
    Blame blame(const LedgerEntry& newest, const GenerationFacts& facts,
                const Limits& limits) const;
    const Blame& blame() const { return blame_; }

    // ---- the next generation
    int restarts() const { return history_.restarts; }
    const std::string& cause() const { return cause_; }
    void next_because(const std::string& cause) { cause_ = cause; }

  private:
    void forget_generation();

    RestartHistory history_;
    RestartWatch times_;
    Blame blame_;                                // as the newest entry has it
    std::pair<std::uint64_t, Time> proposed_{};  // the newest generation: its random number, when
    std::string culprit_;
    bool judged_ = false;
    std::string cause_ = "start";
};

}  // namespace ddprun::rendezvous
