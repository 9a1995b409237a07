// The one ledger of a virtual job: entries in order, each written once. Before it stands a file
// system that stalls, loses answers, returns old states, and applies a create that it has reported
// as failed. Network file systems do all of this.
//
// Owned by the World.
#pragma once

#include <functional>
#include <set>
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
    // The entry that made this generation, or null.
    const rendezvous::LedgerEntry* find(Generation generation) const;
    const rendezvous::LedgerEntry* end() const;  // of the job, or null
    // From `begin` to `end` nothing is read and no create is answered, on one host or on all (-1).
    // Half of the creates are applied at once all the same.
    void stall(int host, Time begin, Time end) { stalls_.push_back({host, begin, end}); }
    // Three in ten reads do not see entries that are younger than some age up to this one.
    void stale(Duration age) { stale_ = age; }
    void overwrite() { overwrites_ = true; }  // for a mutation: the last writer wins
    // This share of creates is answered with "failed", whatever really happens. As many are
    // repeated below the ledger, so that a create that won is answered with "exists".
    void lose_answers(double share_of_creates) { lost_answers_ = share_of_creates; }

    // A host that has no way to this ledger: its folder is not on the shared file system.
    void hide_from(int host) { hidden_from_.insert(host); }
    // It was in memory and its process has ended: a new one begins.
    void forget();
    // Somebody removes an entry. Who reads the ledger from there on learns of it (ledger_folder.h).
    // The newest entry stays: that one may be missed by nobody, a named limit of the protocol.
    void vanish(int which);
    bool has_lost_an_entry() const { return !vanished_.empty(); }

    // Looks are answered from a cache: by what was there three leases ago. For a mutation.
    void old_looks(bool old) { old_looks_ = old; }

    void read(int host, EntryNumber from, Answer answer);
    void look(int host, const rendezvous::LookLedger& look, Answer answer);
    void create(int host, rendezvous::LedgerEntry entry, Answer answer);

  private:
    struct Stall {
        int host;
        Time begin, end;
    };
    // When a request of this host that comes at `when` is taken up.
    Time ready(int host, Time when) const;
    rendezvous::LedgerCreated apply(const rendezvous::LedgerEntry& entry);

    Clock& clock_;
    Random& random_;
    Duration lease_;
    Violation violation_;
    Appended appended_;
    double lost_answers_ = 0.05;
    bool overwrites_ = false;
    bool old_looks_ = false;
    Duration stale_{};
    std::vector<rendezvous::LedgerEntry> entries_;
    std::vector<Time> written_;  // the moment of each entry
    // When looks find it: its writer has an answer to its create. kNever: not yet.
    std::vector<Time> visible_;
    std::vector<Stall> stalls_;
    std::set<int> hidden_from_;  // hosts
    std::set<EntryNumber> vanished_;
};

}  // namespace ddprun::sim
