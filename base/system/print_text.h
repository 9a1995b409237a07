// Prints the text that a program was called for, such as its help, to standard output.
#pragma once

#include <string>

#include "base/error.h"

namespace ddprun {

// A reader that has gone is no error: in `ddprun --help | head` it has seen what it wanted (writes
// must report EPIPE, so SIGPIPE must be ignored). Possible errors: unavailable, also if the caller
// has closed standard output.
Result<> print_text(const std::string& text);

}  // namespace ddprun
