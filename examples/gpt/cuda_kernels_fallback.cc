// The GPU's kernels in a build without CUDA: only an error.
#include "examples/gpt/cuda_kernels.h"

namespace example::gpt {

ddprun::Result<const Kernels*> cuda_kernels(Precision) {
    return ddprun::Error(ddprun::ErrorCode::unavailable, "this program was built without CUDA");
}

}  // namespace example::gpt
