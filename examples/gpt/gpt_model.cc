// What the CPU's and the GPU's network share: names of tensors, and AdamW's numbers.
#include "examples/gpt/gpt_model.h"

#include <cmath>

namespace example::gpt {

using ddprun::trainer::DataType;
using ddprun::trainer::NamedBuffer;

std::vector<NamedBuffer> named_tensors(const GptShape& shape, float* values,
                                       const std::string& prefix) {
    std::vector<NamedBuffer> all;
    for (const auto& tensor : tensors(shape))
        all.push_back(
            {prefix + tensor.name, {values + tensor.offset, tensor.count, DataType::float32}});
    return all;
}

std::vector<NamedBuffer> named_moments(const GptShape& shape, float* values) {
    auto all = named_tensors(shape, values, "adam_m.");
    for (auto& second : named_tensors(shape, values + parameter_count(shape), "adam_v."))
        all.push_back(std::move(second));
    return all;
}

AdamStep adam_step(const AdamOptions& o, const Tensor& tensor) {
    const auto correction = [&](float beta) {
        return static_cast<float>(1 - std::pow(static_cast<double>(beta), o.step));
    };
    return {o.rate,
            o.beta1,
            o.beta2,
            o.epsilon,
            tensor.shape.size() > 1 ? o.decay : 0,
            correction(o.beta1),
            correction(o.beta2)};
}

}  // namespace example::gpt
