// A process group on Gloo, the CPU backend. Programs call make_process_group() in trainer/backend,
// which chooses the backend.
#pragma once

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Connects to the other ranks of `context`. A world of one needs no network. `store` belongs to the
// new group alone. `deadline`: of the connecting. Errors: timed_out, unavailable, those of the
// store.
Result<std::unique_ptr<ProcessGroup>> make_gloo_group(
    const Context& context, std::unique_ptr<Store> store, const GroupOptions& options,
    std::chrono::steady_clock::time_point deadline);

// The deadline is the group's timeout from now.
inline Result<std::unique_ptr<ProcessGroup>> make_gloo_group(const Context& context,
                                                             std::unique_ptr<Store> store,
                                                             const GroupOptions& options) {
    return make_gloo_group(context, std::move(store), options,
                           std::chrono::steady_clock::now() + options.timeout);
}

}  // namespace ddprun::trainer
