// Lets a GPT continue a text, character by character.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "examples/gpt/gpt_model.h"

namespace example::gpt {

// The token that a random number in [0, 1) means: each has its share of the line from 0 to 1, by
// the softmax of its logit / temperature. Only the first `count` logits count. Pure.
int token_at(std::span<const float> logits, int count, float temperature, double random);

// The text as any terminal shows it: a byte that is neither part of a character in UTF-8 that can
// be printed, nor a line's end or a tab, is a question mark. Pure.
std::string printable_text(const std::string& bytes);

// `characters` characters (bytes) after a line's end, as printable_text(). They are a function of
// the model and the seed. Errors: those of the model.
ddprun::Result<std::string> sample_text(Gpt& gpt, const std::string& vocabulary, int characters,
                                        std::uint64_t seed);

}  // namespace example::gpt
