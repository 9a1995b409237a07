// The GPU's GPT in a build without CUDA: it only returns an error.
#include "examples/gpt/gpt_model.h"

namespace example::gpt {

ddprun::Result<std::unique_ptr<Gpt>> make_cuda_gpt(const GptShape&, std::span<const float>,
                                                   Precision) {
    return ddprun::Error(ddprun::ErrorCode::unavailable, "this program was built without CUDA");
}

}  // namespace example::gpt
