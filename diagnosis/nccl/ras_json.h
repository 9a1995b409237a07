// Reads RAS's JSON: a dump of what it has gathered, with all ranks of all communicators. Pure.
// Errors: nothing, where it is other JSON or none.
#pragma once

#include <optional>
#include <string_view>

#include "diagnosis/nccl/ras_answer.h"

namespace ddprun::agent {

std::optional<RasAnswer> read_ras_json(std::string_view text);

}  // namespace ddprun::agent
