// Starts a keeper process, by fork or by exec.
#include "keeper/keeper_start.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/system/own_proc.h"
#include "keeper/between/keeper_texts.h"
#include "keeper/process/keeper_process.h"
#include "keeper/process/keeper_setup.h"

namespace ddprun::agent {
namespace keeper {
namespace {

struct SocketPair {
    UniqueFd ours, keepers;
};

Result<SocketPair> make_pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return errno_error("cannot create a socketpair for the keeper", errno);
    return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// What the keeper cannot do without. It could only leave, and another one after it.
Result<> check_kernel() {
    const UniqueFd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC));
    if (!timer) return errno_error("this kernel gives no timerfd", errno);
    sigset_t none;
    ::sigemptyset(&none);
    const UniqueFd signals(::signalfd(-1, &none, SFD_CLOEXEC));
    if (!signals) return errno_error("this kernel gives no signalfd", errno);
    // An empty range closes nothing.
    if (::syscall(SYS_close_range, ~0U, ~0U, 0U) != 0 && ::access("/proc/self/fd", R_OK) != 0)
        return errno_error("without close_range() the keeper needs /proc", errno);
    return {};
}

}  // namespace

Result<Started> start_by_fork(const KeeperOptions& options) {
    if (const auto good = check_kernel(); !good) return good.error();
    // As a subreaper, ddprun inherits what a dead keeper leaves behind. Only emulators of Linux
    // know no subreapers (EINVAL); there it goes to init.
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 && errno != EINVAL)
        return errno_error("this kernel does not support PR_SET_CHILD_SUBREAPER", errno);
    Result<SocketPair> pair = make_pair();
    if (!pair) return pair.error();
    const pid_t self = ::getpid();
    // All signals are blocked during the fork: a signal to our process group must not reach a
    // keeper that has not blocked it yet. The keeper sets its own mask later; ddprun restores the
    // old one.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = ::fork();
    // pthread_sigmask() may change errno.
    const int error = errno;
    if (pid != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0)
        return errno_error("cannot fork the keeper (ulimit -u, the pids limit of the cgroup)",
                           error);
    if (pid == 0) {
        pair->ours.reset();
        // _exit() and not exit(): this is a copy of ddprun, and its exit handlers and buffers
        // belong to the original.
        rename_command_line(options.command_line);
        ::_exit(run(pair->keepers.release(), options.own_session, self, options.folders));
    }
    return Started{pid, std::move(pair->ours)};
}

Result<Started> start_by_exec(const KeeperOptions& options) {
    Result<SocketPair> pair = make_pair();
    if (!pair) return pair.error();
    // If the socket already has the number kSocket, dup2() would do nothing and leave it
    // close-on-exec. So it is duplicated from a higher number.
    const UniqueFd high(::fcntl(pair->keepers.get(), F_DUPFD_CLOEXEC, kSocket + 1));
    std::string name = kName, flag = kKeeperArgument, agent = std::to_string(::getpid());
    std::string session = options.own_session ? "session" : "group";
    char* const argv[] = {name.data(), flag.data(), agent.data(), session.data(), nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, high.get(), kSocket);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    // The new keeper starts with all signals blocked, for the reason given in start_by_fork().
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t pid = -1;
    const int failed =
        ::posix_spawn(&pid, own_program().c_str(), &actions, &attributes, argv, environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return errno_error("cannot start a new keeper", failed);
    return Started{pid, std::move(pair->ours)};
}

}  // namespace keeper

std::span<char> command_line_of(int argc, char** argv) {
    if (argc < 1) return {};
    return {argv[0], argv[argc - 1] + std::strlen(argv[argc - 1])};
}

// Arguments: program, kKeeperArgument, pid of ddprun, "session" or "group".
int keeper_main_exec(int argc, char** argv) {
    if (argc != 4) return 2;
    const auto agent = static_cast<pid_t>(std::atol(argv[2]));
    return keeper::run(keeper::kSocket, std::strcmp(argv[3], "session") == 0, agent, {});
}

}  // namespace ddprun::agent
