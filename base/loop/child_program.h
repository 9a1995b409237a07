// Runs a small program as a child process and waits for it on the loop: arguments and input in,
// output and exit code out.
//
// ddprun is a static binary and cannot load libraries for these tasks, so it asks the system's
// programs (getent, munge, unmunge, scontrol) or one that the user names.
//
// Thread: the loop's. When the time limit passes or the caller is destroyed, the child is killed
// with its process group and reaped. The child starts with default signal handling and with no
// descriptor of ours except the three standard ones. It need not read its input.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace ddprun {

struct ProgramResult {
    std::string output;  // standard output, cut after about 64 KiB
    int code = 0;        // exit code; -1 when a signal ended the program
};

// What happens to the child's standard error: it is dropped, or goes where ours goes.
enum class StandardError { dropped, ours };

// `words[0]` is looked up in PATH. `input` becomes standard input, as a memory file, and is
// zeroed. Possible errors: unavailable (the program cannot be started), timed_out (no answer within
// `limit`).
boost::asio::awaitable<Result<ProgramResult>> run_program(
    std::vector<std::string> words, std::string input, Duration limit,
    StandardError errors = StandardError::dropped);

}  // namespace ddprun
