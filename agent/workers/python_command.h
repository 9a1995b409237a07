// Reads the command line of a Python worker: is it one that a fork server (fork_server.h) can stand
// in for? Pure.
//
// Source: python(1), and "Command line and environment" of Python's documentation.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace ddprun::agent {

struct PythonCommand {
    // The interpreter and its options: with "-c" and a text behind them, it runs this text.
    std::vector<std::string> interpreter;
    // What runs: the path of a file, or of a folder or archive with a __main__; empty for -m and
    // -c.
    std::string script;
    std::string module;  // of -m
};

// Possible errors, with a reason that follows "because": refused.
Result<PythonCommand> python_command(const std::vector<std::string>& argv);

}  // namespace ddprun::agent
