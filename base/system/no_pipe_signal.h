// Scope guard: inside the scope, writing to a closed pipe or socket returns EPIPE and sends no
// SIGPIPE that would end the process.
//
// It changes only the signal mask of this thread (threads that start inside inherit the mask). The
// program's handling of SIGPIPE elsewhere stays as it is, which a library must respect. A SIGPIPE
// that arose inside the scope is discarded at the end.
#pragma once

#include <signal.h>

#include <cerrno>

namespace ddprun {

class NoPipeSignal {
  public:
    NoPipeSignal() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~NoPipeSignal() {
        // Unblocking with a pending SIGPIPE would deliver it. So it is taken out first, without
        // waiting. If SIGPIPE was blocked before the scope, a pending one may be the caller's and
        // stays.
        const timespec now{0, 0};
        if (!sigismember(&before_, SIGPIPE)) {
            while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
            }
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoPipeSignal(const NoPipeSignal&) = delete;
    NoPipeSignal& operator=(const NoPipeSignal&) = delete;

  private:
    sigset_t pipe_, before_;
};

}  // namespace ddprun
