// A worker's own account of why it ends, where the launcher looks for it: TORCHELASTIC_ERROR_FILE,
// in the form that torchrun and ddprun read.
#pragma once

#include <string>

#include "base/error.h"

namespace ddprun::trainer {

// Writes it when the variable is set; a file that cannot be written changes nothing. Returns the
// exit code that goes with the error: 2 for a wrong argument, else 1.
int report_error(const Error& error);

// The file's content. `when` in seconds since 1970.
std::string error_file_text(const Error& error, long when);

}  // namespace ddprun::trainer
