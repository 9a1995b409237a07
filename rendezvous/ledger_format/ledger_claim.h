// The first record of a ledger, before its entries: which command it belongs to, and the mark by
// which nodes recognize that they read the same ledger. It is written once, as safely as an entry,
// and never changed. This file also decides whether a ledger that exists already belongs to the
// starting job (PROTOCOL.md, rule 25).
//
// Pure. Errors of reading: malformed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// The job or node that opens a ledger.
struct LedgerOwner {
    std::string command_digest;  // of the job's command: another command has a ledger of its own
    int requeue = 0;             // SLURM_RESTART_COUNT
    // 0: a job begins, or goes on after a requeue; a ledger in the way is set aside. Otherwise the
    // node follows the leader of a running job: only the ledger with this mark is accepted, and
    // none is created.
    std::uint64_t mark = 0;
};

// As LedgerOwner::mark: the newest ledger of the command, no matter which job began it.
inline constexpr std::uint64_t kAnyMark = ~std::uint64_t{0};

struct LedgerClaim {
    std::string command_digest;
    std::uint64_t mark = 0;  // random, never 0
    bool operator==(const LedgerClaim&) const = default;
};

std::string to_json(const LedgerClaim& claim);
Result<LedgerClaim> claim_from_json(std::string_view text);

// Whether this is the ledger that a follower looks for, by owner.mark.
bool is_sought(const LedgerClaim& claim, const LedgerOwner& owner);

// What a starting job does with an existing ledger of its name.
enum class LedgerUse {
    ours,       // begin, or go on after its last entry
    finished,   // its last entry is the end of a job, and no stop after which Slurm has requeued
                // it: set it aside, begin a new one
    foreign,    // another command's, perhaps of a job that runs now: leave it alone, look elsewhere
    unreadable  // an entry cannot be read, and somebody may rely on it: refuse
};
// `entries`: all readable entries; `cut`: whether an unreadable entry follows them.
LedgerUse decide_use(const LedgerClaim& claim, const std::vector<LedgerEntry>& entries, bool cut,
                     const LedgerOwner& owner);

// "… continues after entry 3 (generation 2, written by gpu01)".
std::string goes_on(const LedgerEntry& newest);

}  // namespace ddprun::rendezvous
