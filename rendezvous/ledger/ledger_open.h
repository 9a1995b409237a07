// From --ledger's value to a ledger that answers: the one place that knows all kinds.
//
// Thread: the loop's. `loop` and `files` must outlive what is opened. Errors: those of the kind,
// and timed_out when a folder has not answered within `limit` (etcd has deadlines of its own).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

#include "base/log.h"
#include "base/loop/file_thread.h"
#include "base/time.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::rendezvous {

struct LedgerShell {
    boost::asio::io_context& loop;
    FileThread& files;
    Log log;
};

// How long a ledger may take. A folder that hangs at the start is mentioned after a while, waited
// for, and given up.
struct LedgerLimits {
    Duration call = std::chrono::seconds{10};      // each read and create of a folder
    Duration mention = std::chrono::seconds{5};    // of the opening, until it is said
    Duration opening = std::chrono::seconds{600};  // of the opening, until it is given up
};

// `opened` is called once, on the loop, never from within the call. With owner.mark it is to be
// called after the leader has named that, not before: a network file system remembers what was not
// there.
void open_ledger(LedgerShell shell, LedgerPlace place, LedgerOwner owner, LedgerLimits limits,
                 LedgerOpened opened);

}  // namespace ddprun::rendezvous
