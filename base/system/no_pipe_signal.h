// A scope in which writing to a closed pipe or socket is an error and not the end of the process.
//
// Only this thread's mask changes, and threads that are made inside keep SIGPIPE blocked; how the
// program treats the signal elsewhere stays as it was. A SIGPIPE that arose inside is taken away at
// the end.
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
