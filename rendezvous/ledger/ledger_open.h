// Opens the ledger that --ledger names: the only place that knows all kinds.
//
// Thread: the loop's. `loop` and `files` must outlive what is opened. Possible errors: those of the
// kind, and timed_out if a folder has not answered within LedgerLimits::opening (etcd has deadlines
// of its own).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

#include "base/log.h"
#include "base/loop/file_thread.h"
#include "base/time.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger_format/ledger_access.h"
#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::rendezvous {

// What every kind of ledger needs from its surroundings.
struct LedgerShell {
    boost::asio::io_context& loop;
    FileThread& files;
    Log log;
    LedgerAccessPointer access{};  // for etcd; null: neither user, certificates nor secret
};

// How long a ledger may take. If a folder hangs at the start, a warning comes after `mention`, and
// it is given up after `opening`.
struct LedgerLimits {
    Duration call = std::chrono::seconds{10};      // for each read and create in a folder
    Duration mention = std::chrono::seconds{5};    // of opening, until the warning
    Duration opening = std::chrono::seconds{600};  // of opening, until it is given up
};

// `opened` is called once, on the loop, never from within the call. With owner.mark, call this only
// after the leader has named the mark: a network file system may remember for seconds that a file
// was missing.
void open_ledger(LedgerShell shell, LedgerPlace place, LedgerOwner owner, LedgerLimits limits,
                 LedgerOpened opened);

// The claim of the newest ledger at a shared place, whoever began it: to find out whether this host
// sees it. Blocks; a folder for as long as its file system. Errors: not_found, unavailable,
// malformed.
Result<LedgerClaim> read_claim(const LedgerPlace& place, LedgerAccessPointer access);

}  // namespace ddprun::rendezvous
