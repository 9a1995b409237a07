// Finds the jobs that have ledgers in a folder or in etcd, and those that a pointer in such a
// folder names (job_pointer.h). It only looks, and writes nothing.
//
// Thread: blocks as long as the file system does, or etcd.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "operator/ddpctl/ctl_call.h"
#include "operator/ddpctl/found_job.h"
#include "rendezvous/ledger/ledger_contents.h"

namespace ddprun::launcher {

struct Survey {
    std::string folder;          // where they lie
    std::vector<FoundJob> jobs;  // by begin, then by name
};

// What --ledger means: a folder with ledgers in it, or a ledger; etcd, or a job there
// ("etcd:HOST:PORT/NAME"); without it .ddprun in the working directory, where a missing folder
// means that there is no job. What is no ledger's folder is left out. Possible errors: usage,
// not_found, unavailable, refused.
Result<Survey> survey_ledgers(const CtlCall& call);

// The same for a folder; an empty name: .ddprun.
Result<Survey> survey_folder(const std::string& folder, const CtlCall& call);

// The job anew. Nothing: its ledger is not there any more, or is another job's.
std::optional<FoundJob> look_again(const FoundJob& job);

// All entries of its ledger. Possible errors: those of read_history(), and of etcd.
Result<rendezvous::LedgerHistory> history_of(const FoundJob& job);

}  // namespace ddprun::launcher
