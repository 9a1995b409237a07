// Reads masks of signals, executables and children of processes from /proc.
#include "agent/workers/signal_look.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/system/small_file.h"
#include "keeper/killing/descendants.h"

namespace ddprun::agent {
namespace {

std::string folder(std::int64_t pid) { return "/proc/" + std::to_string(pid); }

ThreadStatus status_of(const std::string& folder) {
    return parse_thread_status(read_small_file(folder + "/status"));
}

// The kernel function in which a thread sleeps. Its name may have an addition of the compiler.
bool sleeps_in(const std::string& folder, const char* function) {
    return read_small_file(folder + "/wchan").starts_with(function);
}

// sigwait() takes the signal out of SigBlk while it waits.
bool keeps_back(const std::string& folder, const ThreadStatus& status, int signal) {
    return status.blocks(signal) || sleeps_in(folder, "do_sigtimedwait");
}

std::string program_of(const std::string& folder) {
    char path[4096];
    const ssize_t size = ::readlink((folder + "/exe").c_str(), path, sizeof path);
    return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string();
}

// A signal goes to any thread that does not block it, so all must.
bool handles(std::int64_t pid, const ThreadStatus& status, int signal) {
    if (status.catches(signal)) return true;
    if (status.ignores(signal)) return false;
    if (!keeps_back(folder(pid), status, signal)) return false;
    if (status.threads < 2) return true;
    return std::ranges::all_of(threads_of(pid), [&](std::int64_t thread) {
        const std::string its = folder(pid) + "/task/" + std::to_string(thread);
        const ThreadStatus each = status_of(its);
        return each.has_ended() || keeps_back(its, each, signal);
    });
}

}  // namespace

SignalTargets SignalLook::targets(std::int64_t worker) {
    return signal_targets(worker, [this](std::int64_t pid) { return look(pid); });
}

std::optional<SeenProcess> SignalLook::look(std::int64_t pid) {
    if (!pidfds_.contains(pid))
        pidfds_[pid].reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const ThreadStatus status = status_of(folder(pid));
    if (status.has_ended()) return std::nullopt;
    SeenProcess seen;
    seen.handles = handles(pid, status, signal_);
    seen.ignores = status.ignores(signal_);
    seen.program = program_of(folder(pid));
    seen.only_waits = !seen.handles && status.threads == 1 && sleeps_in(folder(pid), "do_wait");
    if (is_shell(seen.program) || seen.only_waits)
        for (const pid_t child : find_children(static_cast<pid_t>(pid)))
            seen.children.push_back(child);
    return seen;
}

void SignalLook::send(std::int64_t pid) {
    const UniqueFd& pidfd = pidfds_[pid];
    if (pidfd)
        ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal_, nullptr, 0);
    else
        ::kill(static_cast<pid_t>(pid), signal_);
}

}  // namespace ddprun::agent
