// A worker that is requested now and started later. The caller closes its descriptors soon, so they
// are duplicated.
#pragma once

#include <optional>
#include <vector>

#include "base/system/unique_fd.h"
#include "keeper/between/worker_start.h"

namespace ddprun::agent::warm {

struct HeldStart {
    WorkerStart start;  // with the descriptors of `held`
    std::vector<UniqueFd> held;
};

// None: the process has no descriptors left.
std::optional<HeldStart> hold(const WorkerStart& start);

}  // namespace ddprun::agent::warm
