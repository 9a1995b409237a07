// Reads RAS's text for people. Pure. Errors: nothing, where it is another text or not whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "diagnosis/nccl/ras_answer.h"

namespace ddprun::agent {

std::optional<RasAnswer> read_ras_text(std::string_view text);

// A name of an answer for a line for people: what is no part of an address, a hash or a word is
// left out.
std::string plain_ras_word(std::string_view word);

}  // namespace ddprun::agent
