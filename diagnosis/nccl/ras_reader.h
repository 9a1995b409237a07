// Reads an answer of RAS in either form. Pure: bytes in, values out.
//
// The answer is another process's, so anything may be in it. Errors: what is neither form, is not
// whole or longer than kLongestRasAnswer has nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "diagnosis/nccl/ras_answer.h"

namespace ddprun::agent {

inline constexpr std::size_t kLongestRasAnswer = std::size_t{16} << 20;

std::optional<RasAnswer> read_ras_answer(std::string_view text);

}  // namespace ddprun::agent
