// The ledger as the service sees it: numbered entries, each written once. Where they lie is the
// business of ledger_memory and ledger_directory.
//
// Thread: the loop's. Callbacks come on the loop, always later, never from within the call itself;
// a ledger that is destroyed calls nobody any more. Calls are answered in the order in which they
// were made. A ledger may hang for as long as its file system does: the caller watches its own
// deadlines.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/error.h"
#include "rendezvous/events.h"
#include "rendezvous/model.h"

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
};

}  // namespace ddprun::rendezvous
