// Decides by the sender whether a signal to the keeper is meant for ddprun, and sends it on.
#include "keeper/process/signals_for_agent.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/system/small_file.h"

namespace ddprun::agent::keeper {
namespace {

// A longer line of ancestors is not followed: a worker may make it as long as it likes.
constexpr int kMostAncestors = 64;
// How often the ancestors are looked up while some of them end.
constexpr int kLooks = 10;

// Zero: the process has gone, or /proc does not show it. The format is "PID (NAME) STATE PPID …",
// and NAME may contain parentheses.
pid_t parent_of(pid_t pid) {
    const std::string stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = stat.rfind(')');
    if (name_end == stat.npos || name_end + 4 > stat.size()) return 0;
    return static_cast<pid_t>(std::atol(stat.c_str() + name_end + 4));
}

enum class Place : int {
    below,  // of this process
    outside,
    unknown,  // an ancestor has ended during the look, and its children have another parent now
};

Place place_of(pid_t pid) {
    const pid_t self = ::getpid();
    for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
        pid = parent_of(pid);
        if (pid == self) return Place::below;
        if (pid == 0) return Place::unknown;
    }
    return Place::outside;
}

bool sent_by_a_process(const signalfd_siginfo& signal) {
    return signal.ssi_code == SI_USER || signal.ssi_code == SI_TKILL || signal.ssi_code == SI_QUEUE;
}

}  // namespace

sigset_t signals_to_read() {
    sigset_t set;
    ::sigfillset(&set);
    for (const int other : {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGPIPE}) ::sigdelset(&set, other);
    return set;
}

// A sender of an outer PID namespace has the pid 0, and is none of our workers.
bool meant_for_agent(const signalfd_siginfo& signal) {
    const auto sender = static_cast<pid_t>(signal.ssi_pid);
    if (signal.ssi_signo == SIGCHLD || !sent_by_a_process(signal) || sender <= 0) return false;
    for (int look = 0; look < kLooks; ++look) {
        if (::kill(sender, 0) != 0 && errno == ESRCH) return true;
        const Place place = place_of(sender);
        if (place != Place::unknown) return place == Place::below;
    }
    return false;
}

SignalsForAgent::SignalsForAgent(pid_t agent)
    : agent_(agent),
      agent_pidfd_(agent > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, agent, 0)) : -1) {}

bool SignalsForAgent::open() {
    const sigset_t read = signals_to_read();
    signals_.reset(::signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK));
    return static_cast<bool>(signals_);
}

// Several SIGCHLD may be merged into one, so their content is not used: all children are looked at.
// One read a turn: a worker that sends signals without a pause must not hold the loop.
void SignalsForAgent::read(const std::function<void(int signal)>& meant) const {
    signalfd_siginfo signals[8];
    const ssize_t bytes = ::read(signals_.get(), signals, sizeof signals);
    for (ssize_t i = 0; i < bytes / static_cast<ssize_t>(sizeof signals[0]); ++i)
        if (meant_for_agent(signals[i])) meant(static_cast<int>(signals[i].ssi_signo));
}

bool SignalsForAgent::told_to_stop() {
    sigset_t pending;
    return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGTSTP) == 1;
}

// The pidfd makes sure that the signal reaches ddprun and no later process with the same pid.
// Without pidfds, the pid is safe only while ddprun is still our parent.
void SignalsForAgent::send(int number) const {
    if (agent_ <= 0) return;
    if (agent_pidfd_) {
        ::syscall(SYS_pidfd_send_signal, agent_pidfd_.get(), number, nullptr, 0);
    } else if (::getppid() == agent_) {
        ::kill(agent_, number);
    }
}

}  // namespace ddprun::agent::keeper
