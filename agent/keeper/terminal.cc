#include "agent/keeper/terminal.h"

#include <signal.h>
#include <unistd.h>

namespace ddprun::agent {
namespace {

// Also from behind, where the kernel would stop us for it.
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
    // After `bg` and `fg` we are in front, and the worker finds out by being stopped.
    const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (!wants_terminal || !holds_terminal()) ::kill(0, SIGTSTP);  // the whole job of the shell
    if (holds_terminal()) bring_to_front(worker);
    ::kill(-worker, SIGCONT);
}

}  // namespace ddprun::agent
