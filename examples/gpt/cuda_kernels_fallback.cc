// The GPU's kernels in a build without CUDA: only an error.
#include "examples/gpt/cuda_kernels.h"

namespace example::gpt {

template <class T>
ddprun::Result<const BasicKernels<T>*> cuda_kernels() {
    return ddprun::Error(ddprun::ErrorCode::unavailable, "this program was built without CUDA");
}

template ddprun::Result<const BasicKernels<float>*> cuda_kernels();
template ddprun::Result<const BasicKernels<Bfloat16>*> cuda_kernels();

}  // namespace example::gpt
