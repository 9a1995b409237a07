// All that one node's part of a job is made of, before anything runs. A plain value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "launcher/plan/plan.h"

namespace ddprun::launcher {

struct JobInput {
    Plan plan;
    HostFacts host;
    std::map<std::string, std::string> environment;
    std::optional<std::uint64_t> nofile_soft;  // workers are given back
    std::string slurm_job_id;
    std::string secret;  // what stands in --secret-file; empty: not given
};

}  // namespace ddprun::launcher
