// The newest ledger entry, and this leader's right to its generation: whether the leader holds it,
// and whether it is over (PROTOCOL.md, rules 3 to 7).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "rendezvous/model/node_place.h"
#include "rendezvous/rules/lease.h"

namespace ddprun::rendezvous {

// The newest generation, if this leader made it or took it over. It stays here after its end,
// because its lease says when the next generation may be proposed.
struct Held {
    EntryNumber entry = kNoEntry;
    Assignment assignment;
    Lease lease;
    bool over = false;
    bool taken_over = false;
    Time since{};                             // when this leader learned that the entry is its own
    std::map<NodeId, NodePlace> places = {};  // of the members
};

class Claim {
  public:
    const std::optional<LedgerEntry>& top() const { return top_; }  // none: the ledger is empty
    EntryNumber entry() const { return top_ ? top_->number : kNoEntry; }
    Generation newest() const { return top_ ? top_->assignment.generation : kNoGeneration; }
    bool is_member(const NodeId& node) const { return top_ && top_->assignment.find(node); }

    // ---- what the ledger says
    // Another leader wrote the newest entry. Returns true if it is about the generation that was
    // known before.
    bool adopt(const LedgerEntry& entry);
    // This leader wrote the newest entry: a generation, a takeover, or the end of the job.
    void recorded(const LedgerEntry& entry) { top_ = entry; }
    // The leader holds the generation of the newest entry from now on. `unlimited`: a job of one
    // node, without a lease.
    void hold(Time now, Duration lease, bool unlimited);

    // ---- while it is held
    const Held* held() const { return held_ ? &*held_ : nullptr; }  // also after its end
    bool holding() const { return held_ && !held_->over; }
    // A member has echoed an Ack that was sent at `at`. Returns true if all members should hear of
    // the new lease at once.
    bool confirm(const NodeId& node, Time at, Time now) {
        return held_->lease.confirm(node, at, now);
    }
    // All workers of a member have exited.
    void completed(const NodeId& node) { complete_.insert(node); }
    bool some_completed() const { return !complete_.empty(); }
    bool all_completed() const { return complete_.size() >= held_->assignment.members.size(); }
    void began() { complete_.clear(); }

    // ---- its end
    Generation over() const { return over_; }  // the highest that has ended
    bool is_over() const { return over_ >= newest(); }
    void end_held();
    void count_as_over() { over_ = std::max(over_, newest()); }
    // No member can still train under a lease that an earlier activation of this node granted.
    bool is_safe_after_own(Time now) const { return now > own_safe_after_; }
    Time may_follow_at() const;  // kNever: not by a lease

  private:
    std::optional<LedgerEntry> top_;
    std::optional<Held> held_;
    // Of a generation held here before another leader took it over.
    Time own_safe_after_ = kLongAgo;
    Generation over_ = kNoGeneration;
    std::set<NodeId> complete_;
};

}  // namespace ddprun::rendezvous
