// The NCCL backend in a build without CUDA: every call reports that there is none.
#include "trainer/gpu/gpu.h"
#include "trainer/nccl/process_group_nccl.h"

namespace ddprun::trainer {

bool nccl_loads(std::string* why) {
    if (why) *why = gpu_state();
    return false;
}

Result<std::unique_ptr<ProcessGroup>> make_nccl_group(const Context&, std::unique_ptr<Store>,
                                                      const GroupOptions&) {
    return Error(ErrorCode::unavailable, "NCCL cannot be used: " + gpu_state());
}

}  // namespace ddprun::trainer
