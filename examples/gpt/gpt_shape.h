// The shape of a GPT-2, its tensors in the order of use, and their first values.
//
// Names and shapes are those of Hugging Face's GPT2LMHeadModel, so that Python reads our files and
// the other way round. All parameters lie in one block of floats, one after the other. Pure.
// Errors: usage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace example::gpt {

struct GptShape {
    int vocabulary = 0;  // rows of the embedding
    int context = 128;   // positions
    int layers = 4, heads = 6;
    int width = 192;  // of the residual stream; a multiple of heads

    bool operator==(const GptShape&) const = default;
};

// Whether such a network can be made; the error names the option.
ddprun::Result<void> check_shape(const GptShape& shape);

// Whether a text with so many characters fits; the error has both numbers.
ddprun::Result<void> check_vocabulary(const GptShape& shape, std::size_t characters);

// One parameter. Weights of layers are stored as inputs × outputs (transformers' Conv1D).
struct Tensor {
    std::string name;                  // "transformer.h.0.attn.c_attn.weight"
    std::vector<std::uint64_t> shape;  // two numbers: a matrix, which decays; one: a bias or a norm
    std::size_t offset = 0;            // in the block, in floats
    std::size_t count = 0;
};

// The index of a parameter in tensors(). Twelve of them belong to a layer.
enum Part {
    norm1_weight,
    norm1_bias,
    qkv_weight,  // width × 3 width: query, key, value
    qkv_bias,
    attention_weight,  // width × width
    attention_bias,
    norm2_weight,
    norm2_bias,
    up_weight,  // width × 4 width
    up_bias,
    down_weight,  // 4 width × width
    down_bias,
    parts,
};
inline constexpr std::size_t kTokens = 0, kPositions = 1;  // the embeddings; logits use kTokens too
constexpr std::size_t part_at(int layer, Part part) {
    return 2 + static_cast<std::size_t>(layer) * parts + part;
}
constexpr std::size_t last_norm(const GptShape& shape) {
    return part_at(shape.layers, parts) - parts;
}

// All parameters. Backward reaches the last one first, and the embeddings last.
std::vector<Tensor> tensors(const GptShape& shape);

// The floats of all tensors.
std::size_t parameter_count(const GptShape& shape);

// Uniform numbers with GPT-2's standard deviations, ones for norms, zeros for biases. They are a
// function of shape, seed and place, and examples/python/gpt.py computes the same bits.
std::vector<float> first_parameters(const GptShape& shape, std::uint64_t seed);

}  // namespace example::gpt
