// Parses a worker's own account of its death: the error file that TORCHELASTIC_ERROR_FILE names.
// Pure.
//
// torchrun's @record decorator writes {"message": {"message": TEXT, "extraInfo": {"py_callstack":
// TEXT, "timestamp": "SECONDS"}}}. The form {"message": TEXT, "timestamp": SECONDS} is accepted,
// too. TEXT is, for example, "ValueError: no data". It may have many lines, and the last one says
// most.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::agent {

// Larger files are not read.
inline constexpr std::size_t kLargestErrorFile = std::size_t{1} << 20;

// Returns the last line of the message, at most 1000 bytes of it. Possible errors: malformed. The
// error's sentence continues one that starts with the file's name: "is not JSON".
Result<std::string> read_error_account(std::string_view text);

}  // namespace ddprun::agent
