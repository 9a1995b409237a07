// A small program of the system (getent, munge, unmunge) run as a child: words and input in, output
// and exit code out, waited for on the loop. For what a static binary cannot ask a library.
//
// Thread: the loop's. The child is killed and reaped when the time is over or the caller is gone;
// its standard error is dropped, its signals are the default ones, no descriptor of ours but the
// three standard ones is its own.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "proto/error.h"
#include "proto/time.h"

namespace ddprun::rendezvous {

struct ProgramResult {
    std::string output;  // standard output, at most 64 KiB
    int code = 0;        // exit code; -1: a signal ended it
};

// `words[0]` is looked up in PATH. `input` (at most 4 KiB) is its standard input. Possible errors:
// unavailable (cannot be started), timed_out.
boost::asio::awaitable<Result<ProgramResult>> run_program(std::vector<std::string> words,
                                                          std::string input, Duration limit);

}  // namespace ddprun::rendezvous
