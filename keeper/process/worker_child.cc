// Starts a worker: the keeper makes a plan, and the child carries it out with bare system calls.
#include "keeper/process/worker_child.h"

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

#include "base/default_path.h"
#include "base/system/boot_clock.h"
#include "keeper/process/bare_call.h"

namespace ddprun::agent::keeper {
namespace {

// Sanitizers keep records for each stack and thread. A child that shares memory would corrupt them,
// so sanitized builds fork.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShareMemory = false;
#else
constexpr bool kShareMemory = kBareCalls;
#endif
// The child calls few functions and keeps no large objects on its stack.
constexpr std::size_t kStackSize = std::size_t{16} << 10;

// Everything that the child reads, and its stack. The keeper does not touch it while the child
// shares memory.
struct Plan {
    // Not `= default`: value-initialization would fill the stack with zeros for each worker.
    Plan() {}
    Request request;
    WorkerPayload payload;
    int sources[3 + kMaxExtra];  // -1: /dev/null
    // Paths to try, made beforehand because the child must not allocate.
    std::vector<std::string> programs;
    bool searched = false;  // `programs` comes from a search along PATH
    std::vector<unsigned long> cpus;
    rlimit files{};
    Time deadline{};
    int pipe = -1;
    pid_t keeper = -1;
    alignas(16) char stack[kStackSize];
};

// The functions from here to run_child() run in the child, in the keeper's memory. They must not
// touch errno, must not allocate, and must write nothing but their own stack.

// 127 is never seen: the keeper reports the failure from the pipe. exit_group is repeated because a
// bare call cannot be marked as noreturn.
[[noreturn]] void leave() {
    for (;;) bare_call(SYS_exit_group, 127);
}

// Writing less than PIPE_BUF bytes to a pipe is atomic.
[[noreturn]] void give_up(int pipe, Stage stage, long error) {
    const Failure failure{stage, static_cast<int>(error)};
    bare_call(SYS_write, pipe, &failure, sizeof failure);
    leave();
}

// Puts the child into its own session, or into its own process group at the terminal, and makes
// sure that it never outlives the keeper.
void take_place(const Plan& plan) {
    if (plan.request.foreground == 0) {
        bare_call(SYS_setsid);
    } else {
        bare_call(SYS_setpgid, 0, 0);
        const auto self = static_cast<pid_t>(bare_call(SYS_getpid));
        // All signals are blocked here, so SIGTTOU does not stop the child.
        if (plan.request.in_front != 0) bare_call(SYS_ioctl, STDIN_FILENO, TIOCSPGRP, &self);
    }
    bare_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    // The keeper may have died before prctl(). Then no death signal will come.
    if (bare_call(SYS_getppid) != plan.keeper) leave();
}

// Places the descriptors in two steps: all of them above the highest final number, then down to the
// final numbers. In one step a descriptor could overwrite one that is still needed. Returns the new
// number of the pipe, or minus the error.
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
    // From here on only the three standard streams, and what is placed after this line, survive
    // exec. On kernels without close_range this changes nothing: the keeper opens everything with
    // close-on-exec, and it closed what it had inherited.
    bare_call(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    for (std::uint32_t i = 3; i < count; ++i) {
        const long placed = bare_call(SYS_dup3, moved[i], request.extra_numbers[i - 3], 0);
        if (placed < 0) return placed;
    }
    return pipe;
}

// A fresh program expects no blocked signals. The keeper has blocked them and set all handlers to
// the default.
void unblock_signals() {
    const std::uint64_t none = 0;
    bare_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

// Returns only on failure. As execvp(): a search along PATH continues after an error, and reports
// an error other than "not found", because a file that cannot be executed is the better
// explanation.
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

// The order matters: descriptors first, because the pipe must survive to report errors; the
// deadline last, because every step before it may take time.
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
    // Whatever delayed the child since the request: no worker may start after the deadline, because
    // another node may already run the next generation. boot_now() is safe here: clock_gettime()
    // allocates nothing.
    if (boot_now() >= plan.deadline) give_up(pipe, Stage::deadline, ETIME);
    // execute() returns only when it failed.
    give_up(pipe, Stage::exec, execute(plan));
}

// From here on the code runs in the keeper.

// PATH of the worker's environment, not of ours.
const char* path_of(const std::vector<const char*>& environment) {
    for (const char* entry : environment)
        if (entry != nullptr && std::strncmp(entry, "PATH=", 5) == 0) return entry + 5;
    return kDefaultPath;
}

// An empty element of PATH means the current folder (execvp(3)).
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

// A bit mask as sched_setaffinity() takes it.
void plan_cpus(Plan& plan) {
    constexpr std::size_t kBits = 8 * sizeof(unsigned long);
    for (const std::int32_t cpu : plan.payload.cpus) {
        if (cpu < 0) continue;
        const auto bit = static_cast<std::size_t>(cpu);
        if (plan.cpus.size() <= bit / kBits) plan.cpus.resize(bit / kBits + 1);
        plan.cpus[bit / kBits] |= 1UL << bit % kBits;
    }
}

// Only the descriptors that exist were sent, so their indices have no gaps.
void plan_descriptors(Plan& plan, const std::vector<UniqueFd>& fds) {
    std::size_t next = 1;  // behind the payload
    for (std::uint32_t i = 0; i < 3 + plan.request.extras; ++i) {
        const bool present = (plan.request.present >> i & 1U) != 0;
        plan.sources[i] = present ? fds[next++].get() : -1;
    }
}

// The child has the keeper's limit until it sets its own, so the hard limit can be read here.
void plan_files(Plan& plan) {
    ::getrlimit(RLIMIT_NOFILE, &plan.files);
    plan.files.rlim_cur = std::min<rlim_t>(plan.request.nofile_soft, plan.files.rlim_max);
}

// CLONE_VM without CLONE_VFORK: memory is shared, but the keeper continues. The stack grows
// downwards, so the child gets its end. EINVAL: an emulator (qemu-user) shares memory with threads
// only.
pid_t clone_child(Plan& plan) {
    if constexpr (kShareMemory) {
        const pid_t shared = ::clone(run_child, plan.stack + kStackSize, CLONE_VM | SIGCHLD, &plan);
        if (shared >= 0 || errno != EINVAL) return shared;
    }
    const pid_t pid = ::fork();
    if (pid == 0) run_child(&plan);
    return pid;
}

}  // namespace

// `write_end` closes when this function returns: the child has its own copy, and the pipe ends when
// the child's copy closes.
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
    // The child may have died already, but only the keeper reaps it, so the pid still belongs to
    // it.
    child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
    return child;
}

// A failure arrives as a whole. Zero bytes mean that exec closed the pipe, which is success.
bool read_failure(int exec_pipe, Failure& failure) {
    for (;;) {
        const ssize_t n = ::read(exec_pipe, &failure, sizeof failure);
        if (n < 0 && errno == EINTR) continue;
        return n == static_cast<ssize_t>(sizeof failure);
    }
}

}  // namespace ddprun::agent::keeper
