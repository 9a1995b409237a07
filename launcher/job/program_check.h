// Checks that the workers' program can be started, before anything else happens: a wrong path is
// the user's to correct, and no node should wait at a rendezvous for it. Shell: looks at files.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// The executable file that execvp() would find for a name without a slash; empty: none. `path` is
// PATH, as in all functions here; nothing: it is not set, and kDefaultPath counts.
std::string find_in_path(const std::string& program, const std::optional<std::string>& path);

// The first place where a program or an interpreter is looked for, and which does not answer within
// `limit`: one of a dead file server; empty: all answer. Starts a thread.
std::string find_silent_place(const std::map<std::string, std::string>& environment,
                              std::chrono::nanoseconds limit);

// The Python interpreter to use: PYTHON_EXEC, else the one of the active virtual environment, else
// the one beside ddprun if it was called torchrun, or by its path in an environment that PATH does
// not lead to. The last one imitates torchrun's own first line
// ("#!/path/of/the/environment/bin/python"). Nothing: python3 from PATH.
std::optional<std::string> find_python(const std::map<std::string, std::string>& environment,
                                       const std::filesystem::path& called_as, bool as_torchrun);

// Possible errors: usage, with the path and how to fix it. `path` is the PATH that the workers will
// have. `or_else` ends the sentence about a file that is not executable: what else may be meant.
Result<> check_program(const std::string& program, const std::optional<std::string>& path,
                       const std::string& or_else = {});
// The program of the workers, and the script that an interpreter is given.
Result<> check_worker_program(const Plan& plan, const std::optional<std::string>& path);

}  // namespace ddprun::launcher
