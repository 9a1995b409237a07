// Runs a small program as a child process and waits for it on the loop: arguments and input in,
// output and exit code out.
//
// ddprun is a static binary and cannot load libraries for these tasks, so it asks the system's
// programs (getent, munge, unmunge, scontrol) or one that the user names.
//
// Thread: the loop's, which never waits for the program. A thread of its own starts the program and
// reaps it, since both may hang: at the start the file system of the program, at the end a system
// call. When the time limit passes or the caller is destroyed, the child is killed with its process
// group. If it does not end by that, it hangs in the kernel; then no second program of this name is
// started on this loop until it ends.
//
// The child starts with default signal handling and with no descriptor of ours except the three
// standard ones. It need not read its input.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
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
// zeroed. `name`: what it is called; empty: `words[0]`. Possible errors: unavailable (the program
// cannot be started, or an earlier one of its name hangs), timed_out (no answer within `limit`; it
// comes half a second later if the program hangs).
boost::asio::awaitable<Result<ProgramResult>> run_program(
    std::vector<std::string> words, std::string input, Duration limit,
    StandardError errors = StandardError::dropped, std::string name = {});

// The same where no loop runs yet. Blocks for as long as `limit`. The error names a program that
// hangs in the kernel.
Result<ProgramResult> run_program_now(std::vector<std::string> words, Duration limit);

// From now on `say` gets a sentence for each program of this loop that hangs, once.
void on_hung_program(boost::asio::io_context& loop, std::function<void(const std::string&)> say);

// Those of this loop that run or hang.
std::vector<pid_t> running_programs(boost::asio::io_context& loop);

}  // namespace ddprun
