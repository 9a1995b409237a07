// Describes one worker that the keeper is to start. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun::agent {

// A descriptor for the worker besides the three standard ones.
struct ExtraFd {
    int number = -1;  // its number in the worker, 3 or more
    int fd = -1;
};

// Describes one worker to be started. Descriptors are borrowed: spawn() duplicates them, and the
// caller may close its own at once. In the worker every other descriptor is closed at exec.
struct WorkerStart {
    // If argv[0] has no slash, it is looked up in PATH of `environment`.
    std::vector<std::string> argv;
    std::vector<std::string> environment;  // "K=V", complete
    std::string cwd;                       // empty: the folder in which ddprun was started
    int stdin_fd = -1;                     // -1 means /dev/null, for each of the three
    int stdout_fd = -1;
    int stderr_fd = -1;
    std::vector<ExtraFd> extra;  // for example the progress pipe
    std::vector<int> cpus;       // empty: all CPUs that ddprun may use
    // The soft limit of open files that the user had before ddprun raised it.
    std::optional<std::uint64_t> nofile_soft;
    // For a worker at a terminal: it gets a process group of its own but stays in ddprun's session,
    // so that it may read the terminal on stdin (terminal.h). A lone worker's group becomes the
    // foreground group if ddprun is in the foreground now, and Ctrl-Z stops both.
    bool foreground = false;
    // With `foreground`, one of several: it comes to the foreground when it reads (keyboard.h).
    bool by_turns = false;
    // A helper of ddprun, not a worker: a sweep leaves it alone, but not what it starts. It ends
    // with everything else when the deadline passes or the job ends. Needs a /proc of its own.
    bool spared = false;
};

}  // namespace ddprun::agent
