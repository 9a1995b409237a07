// Starts a keeper process: by fork from a young ddprun, or by exec of its own program from one that
// has threads. Runs in ddprun. No state.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

struct KeeperOptions {
    // False for a lone worker at a terminal: keeper and worker stay in ddprun's session.
    bool own_session = true;
    // The memory of main's argv, from the first character of the first text to the end of the last
    // one. /proc shows it as the command line, so a forked keeper writes its name over it. Empty:
    // the command line stays that of this program.
    std::span<char> command_line{};
    // Absolute paths of folders that ddprun may make later. The keeper removes them when ddprun is
    // gone, until remove_when_gone() names another. A keeper started by exec does not know them.
    std::vector<std::string> folders{};
};

// Returns that memory. The kernel puts the texts one behind the other.
std::span<char> command_line_of(int argc, char** argv);

// argv[1] of a keeper that was started by exec. main() must look for it first: `return
// keeper_main_exec(argc, argv);`
inline constexpr const char* kKeeperArgument = "--job-keeper";
int keeper_main_exec(int argc, char** argv);

namespace keeper {

// A keeper that was started: its pid, and ddprun's end of the socketpair.
struct Started {
    pid_t pid = -1;
    UniqueFd socket;
};
// Possible errors of both: internal (no process or no socket).
Result<Started> start_by_fork(const KeeperOptions& options);
Result<Started> start_by_exec(const KeeperOptions& options);

}  // namespace keeper
}  // namespace ddprun::agent
