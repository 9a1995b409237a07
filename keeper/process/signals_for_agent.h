// Signals that reach the keeper and are meant for ddprun.
//
// A worker's parent is the keeper. `kill -TERM $PPID` in a worker is meant for the launcher, as
// under torchrun, where the parent is the launcher. So such a signal is sent on to ddprun.
//
// Signals of others are not: Slurm and service managers signal all processes of a step or service,
// so ddprun has got its own, and would get it twice. Keeper process only.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include <functional>

#include "base/system/unique_fd.h"

namespace ddprun::agent::keeper {

// The signals that the keeper reads: SIGCHLD and everything that may be sent on. Job control's and
// SIGPIPE are not among them.
sigset_t signals_to_read();

// Whether this one is to be sent on: a process has sent it, and this process is below us or has
// gone. (Of a sender that has gone nobody knows the parent. `/bin/kill` goes at once, while those
// who signal a whole step live longer than it.)
bool meant_for_agent(const signalfd_siginfo& signal);

// What the keeper reads, and the process of ddprun.
class SignalsForAgent {
  public:
    // 0: nobody gets anything.
    explicit SignalsForAgent(pid_t agent);
    // All signals must be blocked (keeper_setup.h). False: no descriptor is left.
    bool open();
    int fd() const { return signals_.get(); }
    pid_t agent() const { return agent_; }
    // Reads what has come, and tells which of it is meant for ddprun.
    void read(const std::function<void(int signal)>& meant) const;
    // To ddprun itself.
    void send(int number) const;
    void agent_is_gone() { agent_ = 0; }
    // SIGTSTP came to this process too, which blocks it, and no SIGCONT since: that takes it back.
    static bool told_to_stop();

  private:
    pid_t agent_;
    UniqueFd agent_pidfd_, signals_;
};

}  // namespace ddprun::agent::keeper
