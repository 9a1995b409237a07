// The file `allocation` of a ledger folder: the highest restart count with which an allocation of
// the job has begun (PROTOCOL.md, rule 26).
//
// The leader of an older allocation must see a newer one in time, but a client of a network file
// system may remember for a minute that an entry does *not* exist. It asks the server anew when a
// file that exists is opened (close-to-open consistency; Linux NFS: nfs(5)). So this file exists
// from the beginning of the ledger, and a new allocation writes into it instead of replacing the
// file. Each allocation has a line of its own: a write that the file system has held up for long
// must not hide that a newer one has begun meanwhile.
//
// Thread: each call blocks as long as the file system does, so only the FileThread may call.
// Possible errors: those of ledger_folder.h.
#pragma once

#include "base/error.h"
#include "rendezvous/ledger/ledger_files.h"

namespace ddprun::rendezvous {

inline constexpr const char* kAllocationFile = "allocation";

// Makes the file of a ledger that begins. One that exists stays as it is.
Result<> make_allocation_file(const OpenFolder& folder);
// The allocation with this restart count begins. A higher count that stands there stays.
Result<> record_allocation(const OpenFolder& folder, int restart);
// -1: none has begun, or a version of ddprun without this file has made the ledger.
Result<int> newest_allocation(const OpenFolder& folder);

}  // namespace ddprun::rendezvous
