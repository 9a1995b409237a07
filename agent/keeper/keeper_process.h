// The keeper itself: a process with one poll loop and nothing else, in place of Asio and threads.
//
//     request ─▶ fork, deadline, sweep, …
//     SIGCHLD ─▶ reap, exited
//     the deadline passes ─▶ kill all ─▶ expired ─▶ a frozen ddprun too
//     ddprun is gone ─▶ kill all ─▶ Gone frame ─▶ end
//
// "Kill all" is rounds over all descendants until waitpid says that there is none; meanwhile the
// loop goes on, for a process may hang in the kernel while the deadline and ddprun's end still
// matter. Forks asked for in that time fail.
#pragma once

#include <sys/types.h>

namespace ddprun::agent::keeper {

// Makes this process a keeper and runs it until ddprun is gone or asks it to end. `socket` is the
// keeper's end of the socketpair, `agent` the pid of ddprun, its parent. The caller leaves with
// _exit(): nothing else may run in this process.
int run(int socket, bool own_session, pid_t agent);

}  // namespace ddprun::agent::keeper
