// A process group on Gloo, the CPU backend. Programs call make_process_group, which chooses the backend.
#pragma once

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

Result<std::unique_ptr<ProcessGroup>> make_gloo_group(const Context& context,
                                                      std::unique_ptr<Store> store,
                                                      const GroupOptions& options);

}  // namespace ddprun::trainer
