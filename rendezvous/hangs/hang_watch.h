// Watches whether the running generation makes progress. After the hang timeout the leader examines
// the slowest workers while they still live, then it ends the generation. hang.h has the rules and
// finds the slowest workers.
//
//     reports come ──none for hang_timeout──▶ examining ──all answered, or 10 s──▶ hung
//           ▲───────────── a new report ──────────┘
//
// With --hang-timeout=auto it must also be twice as long as the longest pause between two reports.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/hangs/call_mismatch.h"
#include "rendezvous/model/messages.h"
#include "rendezvous/model/node_hash.h"
#include "rendezvous/rules/hang.h"

namespace ddprun::rendezvous {

class HangWatch {
  public:
    // Another generation has begun. What was learnt stays.
    void forget();
    // The generation is over, or is being stopped: nobody is examined any more.
    void stop_examining() { examining_.reset(); }

    // A Beat of a node that runs the generation.
    void heard(Time now, const NodeId& node, const Beat& beat);
    // Whether any report has come. Without one, nothing counts as hung.
    bool counts() const { return reported_at_ != kLongAgo; }
    bool has_reported_since(Time time) const { return reported_at_ > time; }

    // Whether progress came after the examination began; that ends the examination.
    bool resumed();
    bool examines() const { return examining_.has_value(); }
    // Whether the workers should be examined now. False: look again at looks_at().
    bool is_due(Time now, const Limits& limits);
    Time looks_at(const Limits& limits) const;

    // Begins the examination. Returns the ranks to ask each node for. All nodes are asked what
    // their workers have recorded.
    std::map<NodeId, std::vector<int>> examine(Time now, const std::vector<NodeSteps>& nodes);
    void answered(const NodeId& node, const Report& report);
    // Whether the examination is complete; else it is over at examined_by().
    bool is_complete(Time now) const;
    Time examined_by() const { return examining_->until; }

    struct Hung {
        std::string node;  // the node of the slowest worker; empty: not known
        bool to_blame = false;
        WorkerOutcome outcome;
        Time since{};  // the newest report
    };
    // Ends the examination. The sentence says what PyTorch's flight recorders have, if they are
    // read.
    Hung take(Time now, const Limits& limits, int world_size, const RankName& name);

  private:
    struct Examination {
        Time reported{};  // the newest report when it began
        Time until{};
        Slowest slowest;
        std::set<NodeId> asked;  // and have not answered
        std::map<int, WorkerOutcome> seen;
        std::vector<RecordedCalls> recorded;
    };
    std::unordered_map<NodeId, std::int64_t> reports_;  // by each node, the number of its newest
    Time reported_at_ = kLongAgo;                       // the newest of all
    std::optional<Examination> examining_;
    Duration longest_{};  // pause between two reports, in all generations
};

}  // namespace ddprun::rendezvous
