// The terminal that a lone worker holds: which process group is in front, as a shell's job control
// would have it. The worker is a group of its own in ddprun's session, and the shell knows only
// ddprun's: what happens to the worker's group at the keyboard is passed on to ddprun's, and back.
// Shell; ddprun's loop thread, which is its first.
#pragma once

#include <sys/types.h>

namespace ddprun::agent {

// Whether ddprun's group is in front: it was not started with `&`.
bool holds_terminal();

// The worker's group has died in front: Ctrl-C is for ddprun again. Nothing if another is in front.
void take_terminal_back(pid_t worker);

// The worker was stopped: by Ctrl-Z (then ddprun stops, too, and the shell comes to the front), or
// as it wanted the terminal. Returns when both go on, after `fg` or `bg`, or at once, where no shell
// could let them go on.
void stop_with(pid_t worker, int signal);

}  // namespace ddprun::agent
