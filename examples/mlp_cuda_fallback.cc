// The GPU perceptron in a build without CUDA: it only returns an error.
#include "examples/mlp.h"

namespace example {

ddprun::Result<std::unique_ptr<Mlp>> make_cuda_mlp(const MlpShape&, std::span<const float>) {
    return ddprun::Error(ddprun::ErrorCode::unavailable, "this program was built without CUDA");
}

}  // namespace example
