// Everything that one node's part of a job is made from, before anything runs. A plain value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/system/secret_text.h"
#include "launcher/plan/host_facts.h"
#include "launcher/plan/plan.h"
#include "rendezvous/ledger_format/ledger_access.h"
#include "slurm/job_id.h"

namespace ddprun::launcher {

struct JobInput {
    Plan plan;
    HostFacts host;
    std::map<std::string, std::string> environment;
    // The soft limit that the workers get back.
    std::optional<std::uint64_t> nofile_soft;
    slurm::JobId slurm_job;
    std::string temporary_name;  // of the temporary folder
    SecretText secret;           // the contents of --secret-file; empty: not given
    rendezvous::LedgerAccessPointer ledger_access;
};

}  // namespace ddprun::launcher
