// The files of one ledger folder: `ledger.json` (ledger_claim.h), and `entry-000001.json` for each
// entry. They are readable text, with a format line and a checksum. The file `allocation`
// (ledger_allocation.h) stands beside them.
//
// A file is whole or absent. It is written under a temporary name, flushed, and then link()ed to
// its final name, which fails if that name exists. No claim and no entry is ever overwritten, and
// one that is missing below another one is a fault. Each call opens the
// folder once and uses this descriptor, because the folder may be moved away at any moment, and the
// folder of another job may take its name.
//
// On a network file system a look-up may be old, and the client may repeat a request. So only
// "exists" is certain. After it the file is read: whoever finds its own random number in it has
// won.
//
// Each call checks that the folder, and each file that it reads, belong to our own user
// (ledger_owner.h).
//
// Thread: each call blocks as long as the file system does, so only the FileThread may call.
// Possible errors: unavailable (the sentence names the folder and what to do), not_found, malformed
// (the sentence names the file), refused (a folder or file of somebody else).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

struct OpenFolder;  // ledger_files.h

// What could be read.
struct FolderEntries {
    std::vector<LedgerEntry> whole;  // up to the first that is missing or bad
    std::optional<Error> fault;      // of the bad one; not_found: of the folder
};

inline constexpr const char* kClaimFile = "ledger.json";

// The claim that is in the folder now.
Result<LedgerClaim> read_claim(const std::string& folder);
Result<LedgerClaim> read_claim(const OpenFolder& folder);
Result<LedgerEntry> read_entry(const OpenFolder& folder, EntryNumber number);

// `mark` is the folder's mark when the ledger was opened; 0: not checked. A folder that was moved
// away or deleted since is neither read nor written, because the folder of another job may be there
// now.
FolderEntries read_entries(const std::string& folder, std::uint64_t mark, EntryNumber from);
LedgerCreated create_entry(const std::string& folder, std::uint64_t mark, const LedgerEntry& entry);
// The highest restart count with which an allocation has begun; -1: none.
Result<int> newest_allocation(const std::string& folder, std::uint64_t mark);

// Claims the folder: returns the claim that stands there, or writes ours if there is none.
Result<LedgerClaim> claim_folder(const std::string& folder, const std::string& command_digest);
// Tries whether a file can be written and linked here, before anybody relies on it.
Result<> try_writing(const std::string& folder);
// Whether a ledger's folder has files of this name (the job's secret, too); whose number an entry's
// name has, else nothing.
bool is_ledger_file(const std::string& name);
std::optional<EntryNumber> entry_number(const std::string& name);

// Removes temporary files above 10 minutes old, which writers that died have left. If such a writer
// is alive after all, it loses one attempt.
void remove_temporaries(const std::string& folder);

// The folders whose name begins with this folder's name and "-", such as PATH-DIGEST. Empty if the
// parent cannot be read.
std::vector<std::string> folders_beside(const std::string& folder);
// Renames the folder to FOLDER-why-MARK and returns its new place. Returns nothing if another
// process has done so already. The mark in the name makes this safe: of several processes that
// rename at once only the first one succeeds, because a folder with files in it has that name then.
Result<std::optional<std::string>> move_aside(const std::string& folder, const char* why,
                                              std::uint64_t mark);

}  // namespace ddprun::rendezvous
