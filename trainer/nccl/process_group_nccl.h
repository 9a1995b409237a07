// A process group on NCCL, the GPU backend. Programs call make_process_group, which chooses the backend. A build without CUDA has
// process_group_nccl_fallback.cc in its place, which says so.
#pragma once

#include <string>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Whether the NCCL library can be loaded now; `why` says what was wrong.
bool nccl_loads(std::string* why);

Result<std::unique_ptr<ProcessGroup>> make_nccl_group(const Context& context,
                                                      std::unique_ptr<Store> store,
                                                      const GroupOptions& options);

}  // namespace ddprun::trainer
