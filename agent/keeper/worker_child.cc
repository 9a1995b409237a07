#include "agent/keeper/worker_child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "agent/keeper/bare_call.h"
#include "base/system/boot_clock.h"

namespace ddprun::agent::keeper {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShareMemory = false;  // their own records of a stack and a thread would be shared
#else
constexpr bool kShareMemory = kBareCalls;
#endif
constexpr std::size_t kStackSize = std::size_t{16} << 10;

// All that the child reads, and its stack.
struct Plan {
    Plan() {}  // leaves the stack as it is
    Request request;
    WorkerPayload payload;
    int sources[3 + kMaxExtra];  // -1: /dev/null
    std::vector<std::string> programs;
    bool searched = false;  // programs are those of a search along PATH
    std::vector<unsigned long> cpus;
    rlimit files{};
    Time deadline{};
    int pipe = -1;
    pid_t keeper = -1;
    alignas(16) char stack[kStackSize];
};

// ---- in the child: no errno, no allocation, nothing written but the stack

[[noreturn]] void leave() {
    for (;;) bare_call(SYS_exit_group, 127);
}

[[noreturn]] void give_up(int pipe, Stage stage, long error) {
    const Failure failure{stage, static_cast<int>(error)};
    bare_call(SYS_write, pipe, &failure, sizeof failure);
    leave();
}

// Own session, or own process group and the terminal; and never to outlive the keeper.
void take_place(const Plan& plan) {
    if (plan.request.foreground == 0) {
        bare_call(SYS_setsid);
    } else {
        bare_call(SYS_setpgid, 0, 0);
        const auto self = static_cast<pid_t>(bare_call(SYS_getpid));
        if (plan.request.in_front != 0)  // signals are blocked here, so SIGTTOU does not stop us
            bare_call(SYS_ioctl, STDIN_FILENO, TIOCSPGRP, &self);
    }
    bare_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (bare_call(SYS_getppid) != plan.keeper) leave();  // it died before the line above
}

// Moves all descriptors above the numbers they shall have, then down to these. Returns where the
// pipe is now, or minus the error.
long place_descriptors(const Plan& plan) {
    const Request& request = plan.request;
    const std::uint32_t count = 3 + request.extras;
    int above = 3;
    for (std::uint32_t i = 0; i < request.extras; ++i)
        above = std::max(above, request.extra_numbers[i] + 1);
    const long pipe = bare_call(SYS_fcntl, plan.pipe, F_DUPFD_CLOEXEC, above);
    if (pipe < 0) return pipe;
    long moved[3 + kMaxExtra];
    for (std::uint32_t i = 0; i < count; ++i) {
        long source = plan.sources[i];
        if (source < 0) source = bare_call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
        moved[i] = bare_call(SYS_fcntl, source, F_DUPFD_CLOEXEC, above);
        if (moved[i] < 0) return moved[i];
    }
    for (int i = 0; i < 3; ++i)
        if (const long placed = bare_call(SYS_dup3, moved[i], i, 0); placed < 0) return placed;
    // From here on nothing above 2 survives exec, but what follows.
    // On kernels without it: the keeper opens everything close-on-exec, and closed what it had
    // inherited when it began.
    bare_call(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    for (std::uint32_t i = 3; i < count; ++i) {
        const long placed = bare_call(SYS_dup3, moved[i], request.extra_numbers[i - 3], 0);
        if (placed < 0) return placed;
    }
    return pipe;
}

// As a fresh program expects it: all else of signals is as the keeper has it, at its default.
void unblock_signals() {
    const std::uint64_t none = 0;
    bare_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

// Returns only on failure, with the error: what a search along PATH met first that was worse than
// "not there".
long execute(const Plan& plan) {
    long worst = ENOENT;
    for (const std::string& program : plan.programs) {
        const long error = -bare_call(SYS_execve, program.c_str(), plan.payload.argv.data(),
                                      plan.payload.environment.data());
        if (!plan.searched) return error;
        if (error != ENOENT && error != ENOTDIR && worst == ENOENT) worst = error;
    }
    return worst;
}

int run_child(void* made) {
    const Plan& plan = *static_cast<const Plan*>(made);
    const long placed = place_descriptors(plan);
    if (placed < 0) give_up(plan.pipe, Stage::descriptors, -placed);
    take_place(plan);
    const int pipe = static_cast<int>(placed);
    const auto must = [pipe](Stage stage, long result) {
        if (result < 0) give_up(pipe, stage, -result);
    };
    if (*plan.payload.cwd != '\0') must(Stage::directory, bare_call(SYS_chdir, plan.payload.cwd));
    if (!plan.cpus.empty())
        must(Stage::cpus, bare_call(SYS_sched_setaffinity, 0,
                                    plan.cpus.size() * sizeof plan.cpus[0], plan.cpus.data()));
    if (plan.request.nofile_soft != 0)
        must(Stage::limits, bare_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &plan.files, nullptr));
    unblock_signals();
    // The fence: whatever held us up since the request, nothing runs after the deadline (design 6).
    if (boot_now() >= plan.deadline) give_up(pipe, Stage::deadline, ETIME);
    give_up(pipe, Stage::exec, execute(plan));
}

// ---- in the keeper

const char* path_of(const std::vector<const char*>& environment) {
    for (const char* entry : environment)
        if (entry != nullptr && std::strncmp(entry, "PATH=", 5) == 0) return entry + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

void plan_programs(Plan& plan) {
    const std::string program = plan.payload.argv[0];
    if (program.empty()) return;
    plan.searched = program.find('/') == program.npos;
    if (!plan.searched) return plan.programs.push_back(program);
    const std::string path = path_of(plan.payload.environment);
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        plan.programs.push_back((end == at ? "." : path.substr(at, end - at)) + "/" + program);
        at = end + 1;
    }
}

void plan_cpus(Plan& plan) {
    constexpr std::size_t kBits = 8 * sizeof(unsigned long);
    for (const std::int32_t cpu : plan.payload.cpus) {
        if (cpu < 0) continue;
        const auto bit = static_cast<std::size_t>(cpu);
        if (plan.cpus.size() <= bit / kBits) plan.cpus.resize(bit / kBits + 1);
        plan.cpus[bit / kBits] |= 1UL << bit % kBits;
    }
}

void plan_descriptors(Plan& plan, const std::vector<UniqueFd>& fds) {
    std::size_t next = 1;  // behind the payload
    for (std::uint32_t i = 0; i < 3 + plan.request.extras; ++i) {
        const bool present = (plan.request.present >> i & 1U) != 0;
        plan.sources[i] = present ? fds[next++].get() : -1;
    }
}

// Its own limit is what the child would find as its own.
void plan_files(Plan& plan) {
    ::getrlimit(RLIMIT_NOFILE, &plan.files);
    plan.files.rlim_cur = std::min<rlim_t>(plan.request.nofile_soft, plan.files.rlim_max);
}

pid_t clone_child(Plan& plan) {
    if constexpr (kShareMemory)
        return ::clone(run_child, plan.stack + kStackSize, CLONE_VM | SIGCHLD, &plan);
    const pid_t pid = ::fork();
    if (pid == 0) run_child(&plan);
    return pid;
}

}  // namespace

Child start_worker(const Request& request, WorkerPayload payload, const std::vector<UniqueFd>& fds,
                   Time deadline) {
    Child child;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        child.failure = {Stage::descriptors, errno};
        return child;
    }
    child.exec_pipe.reset(ends[0]);
    const UniqueFd write_end(ends[1]);
    const auto plan = std::make_shared<Plan>();
    plan->request = request;
    plan->payload = std::move(payload);
    plan->deadline = deadline;
    plan->pipe = write_end.get();
    plan->keeper = ::getpid();
    plan_descriptors(*plan, fds);
    plan_programs(*plan);
    plan_cpus(*plan);
    plan_files(*plan);
    child.memory = plan;
    child.pid = clone_child(*plan);
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
