// Job control for workers at a terminal. Each is a process group of its own in ddprun's session,
// but the shell knows only ddprun's group. So what the keyboard does to a worker's group is passed
// on to ddprun's group, and back. A lone worker is in the foreground; several get the keyboard by
// turns (keyboard.h).
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

// One of several workers gets the terminal, and continues.
void give_terminal(pid_t worker);
bool is_in_front(pid_t worker);

// What the user has typed is for this worker: one of its threads reads the terminal now. True, too,
// where /proc does not show it. `echoes`: the terminal shows what is typed, and the \n at its end.
struct TerminalUse {
    bool reads = false, echoes = false;
};
// `edits`: it has a line editor, although the terminal is in line mode.
TerminalUse use_of_terminal(pid_t worker, bool edits);

// The modes (echo, line mode) as they were at the first call. A worker that is stopped within its
// prompt does not restore them.
void keep_terminal_modes();
bool has_usual_modes();
void restore_terminal_modes();

}  // namespace ddprun::agent
