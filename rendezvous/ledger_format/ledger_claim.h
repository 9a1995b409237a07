// What a ledger begins with, before its first entry: whose it is, and the mark by which others know
// that they read the same one. Written once, with the same care as an entry, and never changed. And
// what is decided by it: whether a ledger that was found is that of the job that begins.
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

// Who opens a ledger.
struct LedgerOwner {
    std::string command_digest;  // of the job's command: another command has a ledger of its own
    int requeue = 0;             // SLURM_RESTART_COUNT
    // 0: a job begins, or goes on after a requeue; what is in the way is set aside. Else a running
    // job's leader is followed: only the ledger with this mark will do, and nothing is begun.
    std::uint64_t mark = 0;
};

// As LedgerOwner::mark: the newest ledger of the command, by whomever it was begun.
inline constexpr std::uint64_t kAnyMark = ~std::uint64_t{0};

struct LedgerClaim {
    std::string command_digest;
    std::uint64_t mark = 0;  // random, never 0
    bool operator==(const LedgerClaim&) const = default;
};

std::string to_json(const LedgerClaim& claim);
Result<LedgerClaim> claim_from_json(std::string_view text);

// Whether it is the ledger that one who begins none looks for, by owner.mark.
bool is_sought(const LedgerClaim& claim, const LedgerOwner& owner);

// What a job that begins does with a ledger of its name.
enum class LedgerUse {
    ours,       // begin, or go on after its last entry
    finished,   // its last entry is the end of a job, and no stop after which Slurm has requeued
                // it: set it aside, begin a new one
    foreign,    // another command's, perhaps of a job that runs now: leave it alone, look elsewhere
    left,       // an entry cannot be read, but those before it are of an allocation that Slurm has
                // ended since: set it aside, begin a new one
    unreadable  // an entry cannot be read, and somebody may rely on it: refuse
};
// `entries`: all that can be read; `cut`: whether one stands behind them that cannot.
LedgerUse decide_use(const LedgerClaim& claim, const std::vector<LedgerEntry>& entries, bool cut,
                     const LedgerOwner& owner);

// "… goes on after entry 3 (generation 2, written by gpu01)".
std::string goes_on(const LedgerEntry& newest);

}  // namespace ddprun::rendezvous
