// Writes why a worker ends to the file that the launcher reads (TORCHELASTIC_ERROR_FILE). The
// format is that of torchrun; ddprun reads it too.
#pragma once

#include <string>

#include "base/error.h"

namespace ddprun::trainer {

// Writes the file if the variable is set. If the file cannot be written, nothing happens. Returns
// the exit code for this error: 2 where no restart helps, because an argument is wrong (usage) or
// the ranks differ in what must be equal (refused); else 1. With --max-restarts=auto the launcher
// does not start a job again that ends with 2 before it has made progress.
int report_error(const Error& error);

// The content of the file. `when`: seconds since 1970.
std::string error_file_text(const Error& error, long when);

}  // namespace ddprun::trainer
