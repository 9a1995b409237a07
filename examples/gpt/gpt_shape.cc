// Names, sizes and first values of the parameters.
#include "examples/gpt/gpt_shape.h"

#include <cmath>

#include "examples/random.h"

namespace example::gpt {

using ddprun::Result;
using ddprun::usage_error;

Result<void> check_shape(const GptShape& shape) {
    if (shape.width % shape.heads != 0)
        return usage_error("--width " + std::to_string(shape.width) +
                           " is not a multiple of --heads " + std::to_string(shape.heads));
    return {};
}

Result<void> check_vocabulary(const GptShape& shape, std::size_t characters) {
    if (characters <= static_cast<std::size_t>(shape.vocabulary)) return {};
    return usage_error("the text has " + std::to_string(characters) +
                       " characters, but the vocabulary only " + std::to_string(shape.vocabulary) +
                       "; raise --vocabulary, or take the text of the model");
}

std::vector<Tensor> tensors(const GptShape& shape) {
    std::vector<Tensor> all;
    std::size_t offset = 0;
    auto add = [&](const std::string& name, std::vector<std::uint64_t> sizes) {
        std::size_t count = 1;
        for (auto size : sizes) count *= size;
        all.push_back({"transformer." + name, std::move(sizes), offset, count});
        offset += count;
    };
    auto add_layer = [&](const std::string& name, std::uint64_t inputs, std::uint64_t outputs) {
        add(name + ".weight", {inputs, outputs});
        add(name + ".bias", {outputs});
    };
    auto add_norm = [&](const std::string& name, std::uint64_t width) {
        add(name + ".weight", {width});
        add(name + ".bias", {width});
    };
    const auto width = static_cast<std::uint64_t>(shape.width);
    add("wte.weight", {static_cast<std::uint64_t>(shape.vocabulary), width});
    add("wpe.weight", {static_cast<std::uint64_t>(shape.context), width});
    for (int layer = 0; layer < shape.layers; ++layer) {
        const std::string prefix = "h." + std::to_string(layer) + ".";
        add_norm(prefix + "ln_1", width);
        add_layer(prefix + "attn.c_attn", width, 3 * width);
        add_layer(prefix + "attn.c_proj", width, width);
        add_norm(prefix + "ln_2", width);
        add_layer(prefix + "mlp.c_fc", width, 4 * width);
        add_layer(prefix + "mlp.c_proj", 4 * width, width);
    }
    add_norm("ln_f", width);
    return all;
}

std::size_t parameter_count(const GptShape& shape) {
    const auto last = tensors(shape).back();
    return last.offset + last.count;
}

std::vector<float> first_parameters(const GptShape& shape, std::uint64_t seed) {
    std::vector<float> values(parameter_count(shape));
    for (const auto& tensor : tensors(shape)) {
        float* own = &values[tensor.offset];
        if (tensor.shape.size() == 1) {
            // Norms begin as they are called: they change nothing. Biases begin at 0.
            const bool norm = tensor.name.find("ln_") != std::string::npos;
            if (norm && tensor.name.ends_with(".weight")) std::fill_n(own, tensor.count, 1.0f);
            continue;
        }
        // A uniform number in [-1, 1) has the standard deviation 1 / sqrt(3). What is added to the
        // residual stream is smaller, the more there is of it.
        double range = 0.02 * std::sqrt(3.0);
        if (tensor.name.find("c_proj") != std::string::npos) range /= std::sqrt(2.0 * shape.layers);
        const auto scale = static_cast<float>(range);
        for (std::size_t i = 0; i < tensor.count; ++i)
            own[i] = scale * uniform(seed, tensor.offset + i);
    }
    return values;
}

}  // namespace example::gpt
