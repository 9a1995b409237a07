// What lies in one ledger folder, for those who look at ledgers of jobs or remove them: ddpctl.
//
// Whatever lies there, nothing is followed and nothing is waited for: a folder with a file that is
// no ledger's, a link or a FIFO is told as such, and its files are not opened.
//
// Thread: each call blocks as long as the file system does. Possible errors: those of
// ledger_folder.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

struct LedgerContents {
    std::optional<LedgerClaim> claim;    // nothing: no ledger has begun here
    std::optional<LedgerEntry> newest;   // nothing: no entry, or it cannot be read
    std::optional<Error> fault;          // why claim or newest entry cannot be read
    std::vector<std::string> strangers;  // names of files that no ledger has, sorted
    std::int64_t entries = 0;
    std::int64_t bytes = 0;  // on the disk
    // When the claim and the newest entry were written, since 1970, by the clock of the file
    // server. Both files are written once. 0: there is none.
    Duration begun{}, written{};
};
// Looks into the folder, which is no link. Possible errors also: refused (a link).
Result<LedgerContents> look_into(const std::string& folder);

// An entry, and when it was written, since 1970, by the clock of the file server.
struct DatedEntry {
    LedgerEntry entry;
    Duration written{};
};
struct LedgerHistory {
    std::vector<DatedEntry> entries;  // in order, up to the first that is missing or bad
    std::optional<Error> fault;       // of that one
};
// Reads all entries of the ledger with this mark. Possible errors also: refused (a link).
Result<LedgerHistory> read_history(const std::string& folder, std::uint64_t mark);

// Removes the ledger with this mark: moves it to FOLDER-why-MARK and deletes it there, so that a
// job which begins at this moment finds it whole or finds nothing. If `why` is the word with which
// such a job sets a finished ledger aside, only one of the two moves it.
//
// Nothing is deleted but files of a ledger: with any other file in the folder, all of it stays.
// Possible errors also: exists (the folder has another mark now, or was moved), refused (another
// file lies in it).
Result<> remove_ledger(const std::string& folder, std::uint64_t mark, const char* why);

// The same, for the run that has ended itself, with this restart count: only if its end is the
// newest entry. An allocation that has begun meanwhile goes on in the same ledger.
// Possible errors also: exists (another entry is the newest).
Result<> remove_ended_ledger(const std::string& folder, std::uint64_t mark, int restart);

}  // namespace ddprun::rendezvous
