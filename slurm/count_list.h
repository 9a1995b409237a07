// Slurm's lists of counts, one a node, with repetitions folded: `72(x2),36` is 72 72 36. In
// SLURM_STEP_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE, in the order of the matching node list.
// Pure, and bounded in memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::slurm {

// Possible errors: malformed, e.g. "not a count at character 3" (counted from 1).
Result<std::vector<std::int64_t>> expand_count_list(std::string_view text);

}  // namespace ddprun::slurm
