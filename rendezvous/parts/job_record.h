// The job's past, as each ledger entry records it: restarts and crash loops (restart_policy.h),
// blamed hosts (blame.h), and the cost of restarts (restart_times.h). The next leader decides with
// the same past.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
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
    // Another leader wrote the newest entry. `same`: it is about the generation that was known
    // before.
    void adopt(const LedgerEntry& entry, bool same);
    // This leader wrote the newest entry, and it makes a generation. Returns the log lines for
    // newly blamed hosts.
    std::vector<std::string> began(const LedgerEntry& entry);
    // Fills in an entry that this leader proposes now. `first`: the ledger has no entry yet.
    void write(LedgerEntry& entry, Time now, bool first, const Blame& blame, Reach reach);

    // ---- the newest generation
    void heard(const NodeId& node, const Marks& marks, Time now) { times_.heard(node, marks, now); }
    // The generation failed at `since`, and this leader learned it `now`. Only the first call
    // counts.
    void ended(Time since, Time now) { times_.ended(since, now); }
    // Whether its failure was judged already, so that it uses up one restart only.
    bool is_judged() const { return judged_; }
    void judged() { judged_ = true; }
    RestartDecision decide(const WorkerOutcome& failure, Reach reach, const Limits& limits) {
        return decide_restart(history_, failure, reach, limits);
    }
    // It ended because of a worker on this node.
    void ended_by(const std::string& node) { culprit_ = node; }
    // The blame that follows from its end.
    Blame blame(const LedgerEntry& newest, const GenerationFacts& facts,
                const Limits& limits) const;
    const Blame& blame() const { return blame_; }

    // ---- hosts that an operator has taken out. The next entry records them.
    void drain(const std::string& host) { drained_.insert(host); }
    bool is_drained(const std::string& node) const;

    // ---- the next generation
    int restarts() const { return history_.restarts; }
    const std::string& cause() const { return cause_; }
    void next_because(const std::string& cause) { cause_ = cause; }

  private:
    void forget_generation();
    void adopt(const Blame& recorded);

    RestartHistory history_;
    RestartWatch times_;
    Blame blame_;                                // as the newest entry has it
    std::pair<std::uint64_t, Time> proposed_{};  // the newest generation: its random number, when
    std::set<std::string> drained_;              // with those that are not recorded yet
    std::string culprit_;
    bool judged_ = false;
    std::string cause_ = "start";
};

}  // namespace ddprun::rendezvous
