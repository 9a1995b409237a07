// Whether the generation that runs makes progress. Where it does not for the hang timeout, the
// slowest workers are examined while they still live, then the generation is over: hang.h has the
// rules, and which worker is the slowest.
//
//     reports come ──none for hang_timeout──▶ examining ──all answered, or 10 s──▶ hung
//           ▲───────────── a new report ──────────┘
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/model/messages.h"
#include "rendezvous/rules/hang.h"

namespace ddprun::rendezvous {

class HangWatch {
  public:
    // Another generation has begun.
    void forget() { *this = HangWatch(); }
    // The generation is over, or is being stopped: nobody is examined any more.
    void stop_examining() { examining_.reset(); }

    // A Beat of a node that runs the generation.
    void heard(Time now, const NodeId& node, const Beat& beat);
    // Whether there was a report to count from; without one nothing ever hangs.
    bool counts() const { return reported_at_ != kLongAgo; }

    // Whether progress was made after the examination had begun; that ends it.
    bool resumed();
    bool examines() const { return examining_.has_value(); }
    // Whether the workers are to be examined now. False: look again at looks_at().
    bool is_due(Time now, const Limits& limits);
    Time looks_at(const Limits& limits) const { return hangs_at(reported_at_, limits); }

    // Begins the examination: which ranks each node is asked for.
    std::map<NodeId, std::vector<int>> examine(Time now, const std::vector<NodeSteps>& nodes);
    void answered(const NodeId& node, const Report& report);
    // Whether the examination is complete; else it is over at examined_by().
    bool is_complete(Time now) const;
    Time examined_by() const { return examining_->until; }

    struct Hung {
        std::string node;  // of the slowest worker; empty: nobody knows
        bool to_blame = false;
        WorkerOutcome outcome;
        Time since{};  // the newest report
    };
    // Ends the examination.
    Hung take(Time now, const Limits& limits);

  private:
    struct Examination {
        Time reported{};  // the newest report when it began
        Time until{};
        Slowest slowest;
        std::set<NodeId> asked;  // and have not answered
        std::map<int, WorkerOutcome> seen;
    };
    std::map<NodeId, std::int64_t> reports_;  // by each node, the number of its newest
    Time reported_at_ = kLongAgo;             // the newest of all
    std::optional<Examination> examining_;
};

}  // namespace ddprun::rendezvous
