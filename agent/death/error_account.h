// Parses a worker's own account of its death: the error file that TORCHELASTIC_ERROR_FILE names.
// Pure.
//
// torchrun's @record decorator writes {"message": {"message": TEXT, "extraInfo": {"py_callstack":
// TEXT, "timestamp": "SECONDS"}}}. The form {"message": TEXT, "timestamp": SECONDS} is accepted,
// too. TEXT is, for example, "ValueError: no data". It may have many lines, and the last one says
// most. The first form may have "errorCode": CODE beside TEXT, as files have that torchrun has
// passed on: the exit code with which the worker is about to end.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::agent {

// Larger files are not read.
inline constexpr std::size_t kLargestErrorFile = std::size_t{1} << 20;

struct ErrorAccount {
    std::string error;  // the last line of the message, at most 1000 bytes of it
    int exit_code = 1;  // what a Python program with an exception returns, where none is told
};

// Possible errors: malformed. The error's sentence continues one that starts with the file's name:
// "is not JSON".
Result<ErrorAccount> read_error_account(std::string_view text);

}  // namespace ddprun::agent
