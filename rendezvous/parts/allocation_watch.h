// Asks at intervals whether a newer allocation of the job has begun, while this leader holds a
// generation. Decides when to ask, and whether the leader may extend the lease (PROTOCOL.md, rule
// 26). A ledger that does not answer ends no healthy job.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace ddprun::rendezvous {

class AllocationWatch {
  public:
    // The leader does something. After a stall, what the ledger said before it proves nothing.
    void stepped(Time now, Duration lease);

    // An entry is proposed now. `random` is its random number.
    void proposed(std::uint64_t random, Time now) { random_ = random, proposed_ = now; }
    // Whether the answer to that create, which comes now, proves that no newer allocation had begun
    // a moment ago. An entry that an earlier try has written may be old.
    bool is_fresh(std::uint64_t random, Time now, Duration lease) const;
    // A generation is held from now on. Its entry counts as the first look.
    void begin() { asked_ = proposed_, open_ = blocked_ = false; }

    // The number of the question to ask now, if one is due.
    std::optional<std::int64_t> looks(Time now, Duration lease);
    Time looks_at(Duration lease) const;  // when the next one is due
    std::int64_t ask(Time now);           // asks now, whatever is due
    // The ledger has answered this question. False: it was not the newest one.
    bool answered(std::int64_t number);

    // False after a stall, until the ledger has answered a question that was asked after it, or has
    // not done so in time.
    bool may_grant(Time now, Duration lease) const;

  private:
    bool asks_anew() const { return blocked_ && asked_ < woke_; }

    Time stepped_ = kNever;
    std::uint64_t random_ = 0;
    Time proposed_ = kLongAgo;
    Time asked_ = kLongAgo;
    std::int64_t number_ = 0;
    bool open_ = false;     // the newest question has no answer yet
    bool blocked_ = false;  // since a stall
    Time woke_ = kLongAgo;  // from it
};

}  // namespace ddprun::rendezvous
