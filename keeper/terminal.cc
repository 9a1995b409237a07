// Passes the terminal's foreground and its stop signals on between ddprun and its worker.
#include "keeper/terminal.h"

#include <signal.h>
#include <unistd.h>

namespace ddprun::agent {
namespace {

// A background process that calls tcsetpgrp() gets SIGTTOU, which would stop it. Blocking the
// signal allows the call (tcsetpgrp(3)).
void bring_to_front(pid_t group) {
    sigset_t stop, old;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &stop, &old);
    ::tcsetpgrp(STDIN_FILENO, group);
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace

bool holds_terminal() { return ::tcgetpgrp(STDIN_FILENO) == ::getpgrp(); }

void take_terminal_back(pid_t worker) {
    if (::tcgetpgrp(STDIN_FILENO) == worker) bring_to_front(::getpgrp());
}

void stop_with(pid_t worker, int signal) {
    // A worker that reads or writes the terminal from the background is stopped by SIGTTIN or
    // SIGTTOU. If ddprun is in the foreground, because the user typed `fg`, the worker simply gets
    // the terminal.
    const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    // Ctrl-Z: stops ddprun's whole process group, which the shell knows as the job. kill() returns
    // when the shell continues the job.
    if (!wants_terminal || !holds_terminal()) ::kill(0, SIGTSTP);
    if (holds_terminal()) bring_to_front(worker);
    ::kill(-worker, SIGCONT);
}

}  // namespace ddprun::agent
