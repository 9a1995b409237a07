// Job control for a lone worker at a terminal. The worker is a process group of its own in ddprun's
// session, but the shell knows only ddprun's group. So what the keyboard does to the worker's group
// is passed on to ddprun's group, and back.
//
// Thread: the loop's, which is the process's first thread.
#pragma once

#include <sys/types.h>

namespace ddprun::agent {

// Whether ddprun's group is in the foreground (it was not started with `&`).
bool holds_terminal();

// The worker has ended: brings ddprun's group to the foreground, so that Ctrl-C reaches ddprun
// again. Does nothing if another group is in the foreground.
void take_terminal_back(pid_t worker);

// The worker was stopped by `signal`. After Ctrl-Z ddprun stops, too, so that the shell comes to
// the foreground. A worker that needed the terminal gets it. Returns when both continue, after `fg`
// or `bg`. Returns at once where no shell could continue them.
void stop_with(pid_t worker, int signal);

}  // namespace ddprun::agent
