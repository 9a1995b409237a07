// The keeper process: one poll loop, without Asio and without threads, so that it stays small and
// can fork cheaply.
//
//     request                 → fork, deadline, sweep, …
//     SIGCHLD                 → reap → exited
//     the deadline passes     → kill all → expired; kill ddprun, too, if it is frozen
//     ddprun is gone          → kill all → write the Gone frame → end
//
// "Kill all" means rounds over all descendants until waitpid says that there are none
// (killing.h). The loop continues between the rounds: a process may hang in the kernel, while
// the deadline and the end of ddprun still matter. Requests to fork fail in this time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ddprun::agent::keeper {

// Makes this process a keeper, and runs it until ddprun is gone or asks it to end. Returns the exit
// code. `socket` is the keeper's end of the socketpair. `agent` is the pid of ddprun, its parent.
// `folders`: KeeperOptions.
// The caller must leave with _exit(): the process is a fork of ddprun, and ddprun's destructors and
// exit handlers must not run in it.
int run(int socket, bool own_session, pid_t agent, std::vector<std::string> folders);

}  // namespace ddprun::agent::keeper
