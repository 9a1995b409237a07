// Finds the ledgers of jobs in a folder. It only looks, and writes nothing.
//
// Thread: blocks as long as the file system does.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/ctl/found_job.h"

namespace ddprun::launcher {

struct Survey {
    std::string folder;          // where they lie
    std::vector<FoundJob> jobs;  // by begin, then by name
};

// `ledger`: the value of --ledger: a folder with ledgers in it, or a ledger; empty: .ddprun in the
// working directory, where a missing folder means that there is no job. What is no ledger's folder
// is left out. Possible errors: usage (etcd or memory), not_found, unavailable, refused.
Result<Survey> survey_ledgers(const std::string& ledger);

}  // namespace ddprun::launcher
