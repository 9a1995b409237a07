// A small program of the system (getent, munge, unmunge), or one that the user names, run as a
// child: words and input in, output and exit code out, waited for on the loop. For what a static
// binary cannot ask a library.
//
// Thread: the loop's. The child is killed with its process group, and reaped, when the time is over
// or the caller is gone; its signals are the default ones, no descriptor of ours but the three
// standard ones is its own. What it does not read of its input keeps nobody waiting.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace ddprun {

struct ProgramResult {
    std::string output;  // standard output, at most 64 KiB
    int code = 0;        // exit code; -1: a signal ended it
};

enum class StandardError { dropped, ours };

// `words[0]` is looked up in PATH. `input` is its standard input, a file in memory. Possible
// errors: unavailable (cannot be started), timed_out.
boost::asio::awaitable<Result<ProgramResult>> run_program(
    std::vector<std::string> words, std::string input, Duration limit,
    StandardError errors = StandardError::dropped);

}  // namespace ddprun
