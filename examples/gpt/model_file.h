// The weights of a GPT as a safetensors file, as transformers' GPT2LMHeadModel.save_pretrained()
// writes them: Python reads our files, and we read Python's.
//
// The names are those of gpt_shape.h; files of GPT2Model, without the prefix "transformer.", are
// read too. The file's metadata has "heads" and "vocabulary" (the characters, in hexadecimal). A
// file without them is one of transformers: it has heads of 64 numbers, and any characters.
//
// Errors: usage (the file is no GPT-2, or cannot be read), unavailable (it cannot be written).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "examples/gpt/gpt_model.h"
#include "trainer/snapshot/format/safetensors.h"

namespace example::gpt {

// "heads" and "vocabulary" of a model.
ddprun::trainer::Metadata words_of_model(const GptShape& shape, const std::string& vocabulary);
// The vocabulary of such words. Empty if they have none. Errors: usage, for another text.
ddprun::Result<std::optional<std::string>> vocabulary_in(const ddprun::trainer::Metadata& words);

struct ModelFile {
    GptShape shape;
    std::vector<float> parameters;          // in the order of tensors()
    std::optional<std::string> vocabulary;  // its characters, if the file has them
};

ddprun::Result<ModelFile> read_model(const std::string& path);

// `parameters`: in host memory, in the order of tensors(). Replaces an old file at once.
ddprun::Result<void> write_model(const std::string& path, const GptShape& shape,
                                 std::span<const float> parameters, const std::string& vocabulary);

}  // namespace example::gpt
