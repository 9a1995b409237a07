// The ledger as the service sees it: numbered entries, each written once. ledger_memory.h,
// ledger_directory.h and ledger_etcd.h know where entries are stored; ledger_open.h opens the kind
// that was chosen.
//
// Thread: the loop's. Callbacks come on the loop, always later, never from within the call. A
// ledger that is destroyed calls nobody any more. Calls are answered in the order in which they
// were made. A ledger may hang as long as its file system does, so the caller watches its own
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

// Must hold (rendezvous/PROTOCOL.md, rules 7 and 25): an entry is created at most once, whole or
// not at all, and never changes.
class Ledger {
  public:
    using ReadDone = std::function<void(Result<std::vector<LedgerEntry>>)>;
    using CreateDone = std::function<void(LedgerCreated)>;
    using LookDone = std::function<void(Result<int>)>;

    virtual ~Ledger() = default;

    // All entries from number `from` on, in order and without a gap; perhaps none. The read may be
    // old and lack the newest entries. That does no harm, because a create that builds on an old
    // read collides. Possible errors: unavailable (the file system refuses), malformed (an entry is
    // cut or garbled; the sentence names the file).
    virtual void read(EntryNumber from, ReadDone done) = 0;

    // Writes entry.number unless it exists. won: our entry stands there, perhaps by an earlier
    // attempt of ours with the same random number. lost: another entry stands there and is
    // returned. failed: nobody knows; the sentence says why. The machine then makes the entry anew
    // and tries again; what stands there is returned.
    virtual void create(LedgerEntry entry, CreateDone done) = 0;

    // The highest restart count with which an allocation of this job has begun, among the entries
    // from number `from` on; -1: none. The storage itself answers: unlike read(), a look that is
    // asked after such an entry was created finds it (PROTOCOL.md, rule 26).
    virtual void look(EntryNumber from, LookDone done) = 0;

    // The name for sentences: "memory", "directory:/home/u/job/.ddprun/8812.0".
    virtual std::string name() const = 0;

    // The random number that the ledger contains from its beginning. A node that finds the same
    // number reads the same ledger. 0: nobody else can read it (memory).
    virtual std::uint64_t mark() const { return 0; }

    // Whether this command's ledger before this one has an end: it was set aside when this began.
    virtual bool follows_end() const { return false; }

    // The folder in which it really lies, which may differ from the one asked for; empty: in no
    // folder.
    virtual std::string folder() const { return ""; }
};

// The outcome of a create: `stands` is what is in the ledger under that number. The random number
// tells our own entry from an equal one of another process.
inline LedgerCreated created(const LedgerEntry& wanted, LedgerEntry stands) {
    const bool ours = stands.random == wanted.random && stands.leader == wanted.leader;
    return {
        ours ? LedgerCreated::Outcome::won : LedgerCreated::Outcome::lost, std::move(stands), {}};
}

// Called with an opened ledger or the reason why there is none.
using LedgerOpened = std::function<void(Result<std::unique_ptr<Ledger>>)>;

}  // namespace ddprun::rendezvous
