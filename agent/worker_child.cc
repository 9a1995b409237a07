#include "agent/worker_child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include "proto/boot_clock.h"

namespace ddprun::agent::keeper {
namespace {

[[noreturn]] void give_up(int pipe, Stage stage, int error) {
    const Failure failure{stage, error};
    [[maybe_unused]] const ssize_t n = ::write(pipe, &failure, sizeof failure);
    ::_exit(127);
}

// Own session, or own process group and the terminal; and never to outlive the keeper.
void take_place(const Request& request, pid_t keeper) {
    if (request.foreground == 0) {
        ::setsid();
    } else {
        ::setpgid(0, 0);
        if (request.in_front != 0)
            ::tcsetpgrp(STDIN_FILENO,
                        ::getpid());  // signals are blocked here, so SIGTTOU does not stop us
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != keeper) ::_exit(127);  // it died before the line above
}

// Moves all descriptors above the numbers they shall have, then down to these. Returns where the
// pipe is now, or -1.
int place_descriptors(const ChildContext& context, int pipe) {
    const Request& request = *context.request;
    int above = 3;
    for (std::uint32_t i = 0; i < request.extras; ++i)
        above = std::max(above, request.extra_numbers[i] + 1);
    pipe = ::fcntl(pipe, F_DUPFD_CLOEXEC, above);
    if (pipe < 0) return -1;
    int moved[kMaxFds];
    std::size_t next = 1;  // behind the payload
    for (std::uint32_t i = 0; i < 3 + request.extras; ++i) {
        const bool present = (request.present >> i & 1U) != 0;
        const int source =
            present ? (*context.fds)[next++].get() : ::open("/dev/null", O_RDWR | O_CLOEXEC);
        moved[i] = ::fcntl(source, F_DUPFD_CLOEXEC, above);
        if (moved[i] < 0) return -1;
    }
    for (int i = 0; i < 3; ++i)
        if (::dup2(moved[i], i) < 0) return -1;
    // From here on nothing above 2 survives exec, but what follows.
    // On kernels without it: the keeper opens everything close-on-exec, and closed what it had
    // inherited when it began.
    ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    for (std::uint32_t i = 0; i < request.extras; ++i)
        if (::dup2(moved[3 + i], request.extra_numbers[i]) < 0) return -1;
    return pipe;
}

bool bind_cpus(const std::vector<std::int32_t>& cpus) {
    if (cpus.empty()) return true;
    const int last = *std::max_element(cpus.begin(), cpus.end());
    cpu_set_t* set = CPU_ALLOC(last + 1);
    if (set == nullptr) return false;
    const std::size_t size = CPU_ALLOC_SIZE(last + 1);
    CPU_ZERO_S(size, set);
    for (const std::int32_t cpu : cpus)
        if (cpu >= 0) CPU_SET_S(cpu, size, set);
    const bool bound = ::sched_setaffinity(0, size, set) == 0;
    CPU_FREE(set);
    return bound;
}

bool limit_files(std::uint64_t soft) {
    if (soft == 0) return true;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    limit.rlim_cur = std::min<rlim_t>(soft, limit.rlim_max);
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// As a fresh program expects it: all else of signals is as the keeper has it, at its default.
void unblock_signals() {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

const char* path_of(const std::vector<const char*>& environment) {
    for (const char* entry : environment)
        if (entry != nullptr && std::strncmp(entry, "PATH=", 5) == 0) return entry + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

// Returns only on failure, with errno: what a search along PATH met first that was worse than "not
// there".
int execute(const WorkerPayload& payload) {
    char* const* argv = const_cast<char* const*>(payload.argv.data());
    char* const* environment = const_cast<char* const*>(payload.environment.data());
    const std::string program = payload.argv[0];
    if (program.empty()) return ENOENT;
    if (program.find('/') != program.npos) {
        ::execve(program.c_str(), argv, environment);
        return errno;
    }
    int worst = ENOENT;
    const std::string path = path_of(payload.environment);
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        const std::string folder = end == at ? "." : path.substr(at, end - at);
        ::execve((folder + "/" + program).c_str(), argv, environment);
        if (errno != ENOENT && errno != ENOTDIR && worst == ENOENT) worst = errno;
        at = end + 1;
    }
    return worst;
}

[[noreturn]] void run_child(const ChildContext& context, int pipe, pid_t keeper) {
    const int placed = place_descriptors(context, pipe);
    if (placed < 0) give_up(pipe, Stage::descriptors, errno);
    take_place(*context.request, keeper);
    const WorkerPayload& payload = *context.payload;
    if (*payload.cwd != '\0' && ::chdir(payload.cwd) != 0) give_up(placed, Stage::directory, errno);
    if (!bind_cpus(payload.cpus)) give_up(placed, Stage::cpus, errno);
    if (!limit_files(context.request->nofile_soft)) give_up(placed, Stage::limits, errno);
    unblock_signals();
    // The fence: whatever held us up since the request, nothing runs after the deadline (design 6).
    if (boot_now() >= context.deadline) give_up(placed, Stage::deadline, ETIME);
    give_up(placed, Stage::exec, execute(payload));
}

}  // namespace

Child fork_worker(const ChildContext& context) {
    Child child;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        child.failure = {Stage::descriptors, errno};
        return child;
    }
    child.exec_pipe.reset(ends[0]);
    UniqueFd write_end(ends[1]);
    const pid_t keeper = ::getpid();
    child.pid = ::fork();
    if (child.pid == 0) run_child(context, write_end.get(), keeper);
    if (child.pid < 0) {
        child.failure = {Stage::fork, errno};
        return child;
    }
    // Nobody but the keeper reaps it, so this pid is still its own.
    child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
    return child;
}

bool read_failure(int exec_pipe, Failure& failure) {
    for (;;) {
        const ssize_t n = ::read(exec_pipe, &failure, sizeof failure);
        if (n < 0 && errno == EINTR) continue;
        return n == static_cast<ssize_t>(sizeof failure);
    }
}

}  // namespace ddprun::agent::keeper
