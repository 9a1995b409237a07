// Makes SIGTERM work, whatever the caller has done with it. Who starts us from a thread or a script
// may have it blocked or ignored without knowing it, and nothing milder than SIGKILL would be left
// to end the job.
//
// Thread: call it in main(), before there are others. Workers get a clean set of signals in any
// case (the keeper sees to that).
#pragma once

#include <signal.h>

namespace ddprun {

inline void hear_sigterm() {
    ::signal(SIGTERM, SIG_DFL);
    sigset_t term;
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    ::sigprocmask(SIG_UNBLOCK, &term, nullptr);
}

}  // namespace ddprun
