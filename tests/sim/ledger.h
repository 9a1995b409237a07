// The one ledger of a virtual job: entries in order, each written once, behind a file system that
// stalls, loses answers and applies what it has called failed. Owned by the World.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/model/events.h"
#include "tests/sim/clock.h"

namespace ddprun::sim {

class VirtualLedger {
  public:
    using Answer = std::function<void(const rendezvous::Event&)>;
    using Violation = std::function<void(const std::string&)>;
    using Appended = std::function<void(const rendezvous::LedgerEntry&)>;

    VirtualLedger(Clock& clock, Random& random, Duration lease, Violation violation,
                  Appended appended)
        : clock_(clock),
          random_(random),
          lease_(lease),
          violation_(std::move(violation)),
          appended_(std::move(appended)) {}

    const std::vector<rendezvous::LedgerEntry>& entries() const { return entries_; }
    const rendezvous::LedgerEntry* find(Generation generation) const;
    const rendezvous::LedgerEntry* end() const;  // of the job, or null
    // Nothing is read and nothing answered from begin to end (on one host, or on all: -1); half of
    // the creates are applied all the same.
    void stall(int host, Time begin, Time end) { stalls_.push_back({host, begin, end}); }
    // Three in ten look-ups know nothing of what is newer than some age up to this.
    void stale(Duration age) { stale_ = age; }
    void overwrite() { overwrites_ = true; }  // on purpose: the last writer wins
    void lose_answers(double share_of_creates) { lost_answers_ = share_of_creates; }

    void read(int host, EntryNumber from, Answer answer);
    void create(int host, rendezvous::LedgerEntry entry, Answer answer);

  private:
    struct Stall {
        int host;
        Time begin, end;
    };
    Time ready(int host, Time when) const;
    rendezvous::LedgerCreated apply(const rendezvous::LedgerEntry& entry);

    Clock& clock_;
    Random& random_;
    Duration lease_;
    Violation violation_;
    Appended appended_;
    double lost_answers_ = 0.05;
    bool overwrites_ = false;
    Duration stale_{};
    std::vector<rendezvous::LedgerEntry> entries_;
    std::vector<Time> written_;  // when each was
    std::vector<Stall> stalls_;
};

}  // namespace ddprun::sim
