// The NCCL backend of a build without CUDA: it says so.
#include "trainer/gpu.h"
#include "trainer/process_group.h"

namespace ddprun::trainer {

Result<std::unique_ptr<ProcessGroup>> make_nccl_group(const Context&, std::unique_ptr<Store>,
                                                      const GroupOptions&) {
    return Error(ErrorCode::unavailable, "NCCL cannot be used: " + gpu_state());
}

}  // namespace ddprun::trainer
