// Which ledgers `ddpctl forget` removes, and what it says. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/ddpctl/found_job.h"

namespace ddprun::launcher {

struct ForgetWish {
    std::vector<std::string> names;      // empty: all that are old enough
    std::optional<Duration> older_than;  // since the newest entry
    bool force = false;
};

// What happens to one ledger.
struct ForgetPlan {
    FoundJob job;
    std::string left;  // why it is left alone; empty: it is removed
};

// The ledgers that the wish is about: each that is named, and without names each that would go.
// Those that have not ended, or have work left, are removed only if they are named, with force;
// `ddpctl stop` has ended a job.
// Possible errors: not_found (a name), usage (neither names nor an age).
Result<std::vector<ForgetPlan>> plan_forgetting(const std::vector<FoundJob>& jobs,
                                                const ForgetWish& wish, Duration now);

// The word behind the name of a ledger that is moved before it is deleted (ledger_folder.h). That
// of a finished job is the one with which a job that begins moves it, so only one of the two does.
const char* moved_as(const FoundJob& job);

// What became of each. `failed`: why it could not be removed.
struct Forgotten {
    ForgetPlan plan;
    std::string failed;
};
std::string forget_text(const std::vector<Forgotten>& all, bool dry_run, Duration now);
std::string forget_json(const std::vector<Forgotten>& all, bool dry_run);
// 0; 1: one that was named was left alone; 69: one could not be removed.
int forget_code(const std::vector<Forgotten>& all);

}  // namespace ddprun::launcher
