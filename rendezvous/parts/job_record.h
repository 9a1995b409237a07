// The job's past, as each ledger entry records it: restarts and crash loops (restart_policy.h),
// blamed hosts (blame.h), the cost of restarts (restart_times.h), where the time went
// (time_spent.h), and what operators have decided for the rest of it (job_limits.h). The next
// leader decides with the same past.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/parts/job_limits.h"
#include "rendezvous/rules/blame.h"
#include "rendezvous/rules/generation_facts.h"
#include "rendezvous/rules/restart_policy.h"
#include "rendezvous/rules/restart_times.h"
#include "rendezvous/rules/time_spent.h"

namespace ddprun::rendezvous {

class JobRecord {
  public:
    // `to_day`: added to a Time, it gives the time since 1970. `began`: this leader's process did.
    // `limits`: those of the command line.
    explicit JobRecord(Duration to_day = {}, Time began = {}, const Limits& limits = {})
        : to_day_(to_day), began_(began), limits_(limits) {}

    // ---- the ledger's newest entry
    // Another leader wrote the newest entry. `same`: it is about the generation that was known
    // before.
    void adopt(const LedgerEntry& entry, bool same);
    // This leader wrote the newest entry, and it makes a generation. Returns the log lines for
    // newly blamed hosts.
    std::vector<std::string> began(const LedgerEntry& entry);
    // An entry of this leader, of any kind, is the newest one.
    void stands(const LedgerEntry& entry) { limits_.stand(entry.limits); }
    // Fills in an entry that this leader proposes now. `newest`: the one before it; null: the
    // ledger has none yet.
    void write(LedgerEntry& entry, Time now, const LedgerEntry* newest, const Blame& blame,
               const GenerationFacts& facts);

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

    // ---- the limits that hold, with what operators have set. The next entry records that.
    const Limits& limits() const { return limits_.now(); }
    LimitsAsked set_limits(const OperatorLimits& asked, Time now) {
        return limits_.set(asked, to_day_ + now.time_since_epoch());
    }
    // What a leader that is lost was asked. True: it changes what holds.
    bool hear_limits(const LimitsAsked& asked) { return limits_.hear(asked); }

    // ---- the next generation
    int restarts() const { return history_.restarts; }
    bool starts_cold(const Limits& limits) const {
        return rendezvous::starts_cold(history_, limits);
    }
    const std::string& cause() const { return cause_; }
    void next_because(const std::string& cause, RestartCause kind = RestartCause::node) {
        cause_ = cause;
        cause_kind_ = kind;
    }

  private:
    void forget_generation();
    void adopt(const Blame& recorded);
    TimeFacts time_facts(Time now, const GenerationFacts& facts) const;

    Duration to_day_;
    Time began_;

    RestartHistory history_;
    RestartWatch times_;
    Blame blame_;                                // as the newest entry has it
    std::pair<std::uint64_t, Time> proposed_{};  // the newest generation: its random number, when
    std::set<std::string> drained_;              // with those that are not recorded yet
    JobLimits limits_;
    std::string culprit_;
    bool judged_ = false;
    std::string cause_ = "start";
    RestartCause cause_kind_ = RestartCause::node;
};

}  // namespace ddprun::rendezvous
