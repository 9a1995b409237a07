// The files of one ledger folder: `ledger.json` (ledger_claim.h) and one `entry-000001.json` an
// entry, readable by people, with a format line and a checksum. A file is whole or absent: written
// under a temporary name, flushed, then link()ed to its final name, which fails if that exists.
// Nothing is ever overwritten. Each call opens the folder once and stays in it, for it may be moved
// away at any moment, and another job's may take its name.
//
// On a network file system a look-up may be stale and a request may be repeated by the client: so
// "exists" is the word that counts, and after it the file is read; who finds its own random number
// there has won.
//
// Thread: whoever calls blocks for as long as the file system does: the FileThread's only. Errors:
// unavailable (the sentence names the folder and what to do), not_found, malformed (the sentence
// names the file).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

struct FolderEntries {
    std::vector<LedgerEntry> whole;  // up to the first that is missing or cannot be read
    std::optional<Error> fault;      // of the one that cannot; not_found: of the folder
};

Result<LedgerClaim> read_claim(const std::string& folder);

// `mark`: that of the folder when it was opened. One that was moved away or deleted since is neither
// read nor written, for another job's may lie there now. 0: not looked at.
FolderEntries read_entries(const std::string& folder, std::uint64_t mark, EntryNumber from);
LedgerCreated create_entry(const std::string& folder, std::uint64_t mark, const LedgerEntry& entry);

// Makes the folder, and those above it, where they are missing.
Result<> make_folder(const std::string& folder);
// Whose the folder is: the first word that stands there, ours if there was none.
Result<LedgerClaim> claim_folder(const std::string& folder, const std::string& command_digest);
// That a file can be written and linked here, tried before anyone relies on it.
Result<> try_writing(const std::string& folder);
// Temporaries of writers that died: those above 10 minutes old. Should its writer live after all,
// it loses only a try.
void remove_temporaries(const std::string& folder);

// Those whose name is this folder's and more, PATH-DIGEST and others; nothing where that cannot be
// known.
std::vector<std::string> folders_beside(const std::string& folder);
// Renames the folder to FOLDER-why-MARK and says where it lies now. Nothing if another process has
// set that one aside already, and what lies there now is its: with the mark in the name, of any
// number that do this at once rename() lets the first one only, for the name is taken by a folder
// with files in it.
Result<std::optional<std::string>> move_aside(const std::string& folder, const char* why,
                                              std::uint64_t mark);

}  // namespace ddprun::rendezvous
