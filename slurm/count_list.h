// Parses Slurm's lists of counts: one count for each node, with repetitions folded. `72(x2),36`
// means 72 72 36. Pure.
//
// SLURM_STEP_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE have this form. The counts are in the order
// of the matching node list. The result never has more than kMostHosts counts (hostlist.h),
// whatever the text says.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::slurm {

// Possible errors: malformed, for example "not a count at character 3". Characters count from 1.
Result<std::vector<std::int64_t>> expand_count_list(std::string_view text);

}  // namespace ddprun::slurm
