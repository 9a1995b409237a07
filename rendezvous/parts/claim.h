// The newest ledger entry, and this leader's right to the generation in it: whether it holds the
// generation, and whether the generation is over (rules 3 to 7).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "rendezvous/model/node_place.h"
#include "rendezvous/rules/lease.h"

namespace ddprun::rendezvous {

// The newest generation, if this leader made it or took it over. It stays after its end, for its
// lease says when the next generation may be proposed.
struct Held {
    EntryNumber entry = kNoEntry;
    Assignment assignment;
    Lease lease;
    bool over = false;
    bool taken_over = false;
    Time since{};                             // when the entry was ours
    std::map<NodeId, NodePlace> places = {};  // of its members
};

class Claim {
  public:
    const std::optional<LedgerEntry>& top() const { return top_; }  // none: the ledger is empty
    EntryNumber entry() const { return top_ ? top_->number : kNoEntry; }
    Generation newest() const { return top_ ? top_->assignment.generation : kNoGeneration; }
    bool is_member(const NodeId& node) const { return top_ && top_->assignment.find(node); }

    // ---- what the ledger says
    // The newest entry is another leader's. True: of the generation that was known before.
    bool adopt(const LedgerEntry& entry);
    // The newest entry is this leader's; it makes a generation, takes it over, or ends the job.
    void recorded(const LedgerEntry& entry) { top_ = entry; }
    // The generation in it is held from now on. `unlimited`: a job of one node, without a lease.
    void hold(Time now, Duration lease, bool unlimited);

    // ---- while it is held
    const Held* held() const { return held_ ? &*held_ : nullptr; }  // also after its end
    bool holding() const { return held_ && !held_->over; }
    // A member has echoed an Ack that was sent at `at`. True: all are to hear of the new lease.
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
    // No member can still train by a lease that an earlier activation on this node has given.
    bool is_safe_after_own(Time now) const { return now > own_safe_after_; }
    Time may_follow_at() const;  // kNever: not by a lease

  private:
    std::optional<LedgerEntry> top_;
    std::optional<Held> held_;
    Time own_safe_after_ = kLongAgo;  // it was held here before another took it over
    Generation over_ = kNoGeneration;
    std::set<NodeId> complete_;
};

}  // namespace ddprun::rendezvous
