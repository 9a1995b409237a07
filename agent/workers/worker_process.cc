// Signals a worker, if it is still there.
#include "agent/workers/worker_process.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/workers/signal_look.h"
#include "base/system/own_proc.h"

namespace ddprun::agent {

bool WorkerProcess::has(std::int64_t process) const {
    const auto id = static_cast<pid_t>(process);
    return !ended && pid > 0 && (::getsid(id) == pid || ::getpgid(id) == pid);
}

// Where /proc is another one's, its numbers are those of other processes.
void WorkerProcess::signal(int number) const {
    if (!is_there()) return;
    SignalLook look(number);
    const SignalTargets found = proc_is_ours() ? look.targets(pid) : SignalTargets{};
    if (!found.has_program) return signal_group(number);
    for (const std::int64_t process : found.processes) look.send(process);
}

bool WorkerProcess::pass_on(int number) const {
    if (!is_there()) return true;
    if (!proc_is_ours()) {
        signal_group(number);
        return true;
    }
    SignalLook look(number);
    const SignalTargets found = look.targets(pid);
    for (const std::int64_t process : found.processes) look.send(process);
    return found.has_ended || !found.processes.empty();
}

// Signal 0 only checks whether the process still exists. After it was reaped, its number may belong
// to another process group, which must not get the signal.
bool WorkerProcess::is_there() const {
    return !pidfd || ::syscall(SYS_pidfd_send_signal, pidfd.get(), 0, nullptr, 0) == 0;
}

void WorkerProcess::signal_group(int number) const { ::kill(static_cast<pid_t>(-pid), number); }

void WorkerProcess::resized() const {
    if (lives() && is_there()) signal_group(SIGWINCH);
}

void WorkerProcess::wake() const {
    if (lives() && is_there()) signal_group(SIGCONT);
}

void WorkerProcess::kill() const {
    if (!ended && pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

}  // namespace ddprun::agent
