// Signals a worker, if it is still there.
#include "agent/workers/worker_process.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ddprun::agent {

bool WorkerProcess::has(std::int64_t process) const {
    const auto id = static_cast<pid_t>(process);
    return !ended && pid > 0 && (::getsid(id) == pid || ::getpgid(id) == pid);
}

void WorkerProcess::signal(int number) const {
    // Signal 0 only checks whether the process still exists. After it was reaped, its number may
    // belong to another process group, which must not get the signal.
    if (pidfd && ::syscall(SYS_pidfd_send_signal, pidfd.get(), 0, nullptr, 0) != 0) return;
    ::kill(static_cast<pid_t>(-pid), number);
}

void WorkerProcess::kill() const {
    if (!ended && pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

}  // namespace ddprun::agent
