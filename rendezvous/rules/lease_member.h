// A node's half of the lease (PROTOCOL.md, rules 1, 2 and 4): its floor, the newest entry it has
// seen, its Beats and echoes, and its deadline. Pure; owned by the agent machine.
#pragma once

#include <map>
#include <optional>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class LeaseMember {
  public:
    // A new connection was welcomed. Beat and Ack numbers start again.
    void welcomed(Time now, const Welcome& welcome);
    void disconnected() { connected_ = false; }

    // Makes the Beat that is sent now. The caller fills in the progress of the workers.
    Beat beat(Time now);

    struct AckResult {
        // False: from a leader that has been succeeded; ignore it.
        bool accepted = false;
        bool deadline_moved = false;
        bool beat_now = false;  // seen has changed, or this connection's first Ack must be echoed
    };
    AckResult ack(Time now, const Ack& ack);

    // The deadline of a generation that was granted `remaining`, counted from the sending of Beat
    // `beat`. Empty if that Beat is not known (any more).
    std::optional<Time> granted_until(std::int64_t beat, Duration remaining) const;

    void run(Generation generation, EntryNumber entry, Time deadline);
    void stopped();  // all workers of what was run are gone: floor rises to it
    bool raise_floor(Generation generation);  // true when it rose
    bool see(EntryNumber entry);              // true when it is news

    Generation floor() const { return floor_; }
    EntryNumber seen() const { return seen_; }
    Generation running() const { return running_; }
    Time deadline() const { return deadline_; }
    Time next_beat() const;  // kNever: not connected, or a job of one node
    // Each step of the machine begins with it. After a stall of this process the leader's answers
    // may still lie in the connection, so its silence counts only if it lasts a little longer.
    void steps(Time now);
    Time silent_since() const {
        return heard_;
    }  // when the leader was last heard on this connection
    Duration lease() const { return lease_; }
    const NodeId& leader() const { return leader_; }  // in its activation

  private:
    Generation floor_ = kNoGeneration, running_ = kNoGeneration;
    EntryNumber seen_ = kNoEntry;
    Time deadline_ = kNever;
    bool connected_ = false, single_ = false;
    Duration lease_ = Times{}.lease;
    std::int64_t number_ = 0, echo_ = 0;
    std::map<std::int64_t, Time> sent_;
    Time last_beat_ = kLongAgo, heard_ = kLongAgo, last_step_ = kLongAgo;
    NodeId leader_;
    Time other_leader_heard_ = kLongAgo;
    Time leader_acked_ = kLongAgo;
};

}  // namespace ddprun::rendezvous
