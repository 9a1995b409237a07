// A worker's own account of its death, as it stands in its error file (TORCHELASTIC_ERROR_FILE).
//
// torchrun's @record writes {"message": {"message": TEXT, "extraInfo": {"py_callstack": TEXT,
// "timestamp": "SECONDS"}}}; {"message": TEXT, "timestamp": SECONDS} is known too. TEXT is
// "ValueError: no data", perhaps of many lines, of which the last one says most. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::agent {

// More is not read: a report that holds a gigabyte is none.
inline constexpr std::size_t kLargestErrorFile = std::size_t{1} << 20;

// The last line of the message, at most 1000 bytes of it. Possible errors: malformed, whose
// sentence goes on behind the file's name: "is not JSON".
Result<std::string> read_error_account(std::string_view text);

}  // namespace ddprun::agent
