// The ledger as the service sees it: numbered entries, each written once. Where they lie is the
// business of ledger_memory, ledger_directory and ledger_etcd; ledger_open opens the one that was
// chosen.
//
// Thread: the loop's. Callbacks come on the loop, always later, never from within the call itself;
// a ledger that is destroyed calls nobody any more. Calls are answered in the order in which they
// were made. A ledger may hang for as long as its file system does: the caller watches its own
// deadlines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "rendezvous/model/events.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

class Ledger {
  public:
    using ReadDone = std::function<void(Result<std::vector<LedgerEntry>>)>;
    using CreateDone = std::function<void(LedgerCreated)>;

    virtual ~Ledger() = default;

    // All entries from number `from` on, in order, without a gap; perhaps none. A look-up may be
    // stale (it may lack the newest entries): that harms nobody, since a create built on it
    // collides. Errors: unavailable (the file system says no), malformed (an entry is cut or
    // garbled; the sentence names the file).
    virtual void read(EntryNumber from, ReadDone done) = 0;

    // Writes entry.number, unless it exists. won: ours stands there, also when an earlier try of
    // ours with the same random number has put it there; lost: another's stands there, and is
    // handed back; failed: nobody knows, the sentence says why. The machine then makes the entry
    // anew and tries again: ours or another's, what stands is handed back.
    virtual void create(LedgerEntry entry, CreateDone done) = 0;

    // For sentences: "memory", "directory:/home/u/job/.ddprun/8812.0".
    virtual std::string name() const = 0;

    // The random number that stands in the ledger since it was begun. Who finds the same one at
    // the place that it was told reads the same ledger; 0: nobody else can (memory).
    virtual std::uint64_t mark() const { return 0; }

    // Where it really lies, which may not be where it was asked for; empty: in no folder.
    virtual std::string folder() const { return ""; }
};

// What a create is told when `stands` is what it wrote, or found.
inline LedgerCreated created(const LedgerEntry& wanted, LedgerEntry stands) {
    const bool ours = stands.random == wanted.random && stands.leader == wanted.leader;
    return {
        ours ? LedgerCreated::Outcome::won : LedgerCreated::Outcome::lost, std::move(stands), {}};
}

using LedgerOpened = std::function<void(Result<std::unique_ptr<Ledger>>)>;

}  // namespace ddprun::rendezvous
