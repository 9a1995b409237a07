// Reads from /proc what the threads of a process are doing.
#include "diagnosis/stacks/kernel_stack.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "base/system/small_file.h"
#include "keeper/killing/descendants.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;
using Process = std::int64_t;

// Kernel functions of a thread, for the report.
constexpr std::size_t kKernelFrames = 4;

// Empty when the process has ended or the file may not be read.
std::string first_line(const fs::path& path) {
    std::string text = read_small_file(path);
    return text.substr(0, text.find('\n'));
}

fs::path folder(Process pid) { return fs::path("/proc") / std::to_string(pid); }

// A system call by number. Its first argument may be a file descriptor, whose target is worth
// naming.
struct Call {
    long number;
    const char* name;
    bool first_is_fd;
};
// Calls in which programs usually wait. Others are shown by number.
constexpr Call kCalls[] = {
    {SYS_futex, "futex", false},
    {SYS_read, "read", true},
    {SYS_pread64, "pread64", true},
    {SYS_readv, "readv", true},
    {SYS_write, "write", true},
    {SYS_pwrite64, "pwrite64", true},
    {SYS_writev, "writev", true},
    {SYS_recvfrom, "recvfrom", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_sendto, "sendto", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_accept4, "accept4", true},
    {SYS_connect, "connect", true},
    {SYS_ioctl, "ioctl", true},
    {SYS_fsync, "fsync", true},
    {SYS_fdatasync, "fdatasync", true},
    {SYS_flock, "flock", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_ppoll, "ppoll", false},
    {SYS_pselect6, "pselect6", false},
    {SYS_epoll_pwait, "epoll_pwait", true},
    {SYS_wait4, "wait4", false},
    {SYS_waitid, "waitid", false},
    {SYS_nanosleep, "nanosleep", false},
    {SYS_clock_nanosleep, "clock_nanosleep", false},
    {SYS_rt_sigsuspend, "rt_sigsuspend", false},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", false},
    {SYS_openat, "openat", false},
    {SYS_munmap, "munmap", false},
    {SYS_madvise, "madvise", false},
    {SYS_restart_syscall, "a call that is restarted", false},
// Older calls. AArch64 has no poll, for example.
#ifdef SYS_poll
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_epoll_wait, "epoll_wait", true},
    {SYS_accept, "accept", true},
    {SYS_open, "open", false},
    {SYS_pause, "pause", false},
#endif
};

// The file reads "7 0x3 0x7f…": number and arguments of the call, in hexadecimal. It reads
// "running" or starts with -1 when the thread is in no system call. Returns for example "read on
// /data/x" or "futex".
std::string call_name(const fs::path& thread, Process pid) {
    std::istringstream line(first_line(thread / "syscall"));
    std::string number, argument;
    if (!(line >> number >> argument) || number == "-1") return {};
    long value = -1;
    std::from_chars(number.data(), number.data() + number.size(), value);
    const auto known = std::find_if(std::begin(kCalls), std::end(kCalls),
                                    [&](const Call& call) { return call.number == value; });
    if (known == std::end(kCalls)) return "system call " + number;
    if (!known->first_is_fd) return known->name;
    unsigned fd = 0;
    // Skips "0x".
    std::from_chars(argument.data() + 2, argument.data() + argument.size(), fd, 16);
    std::error_code error;
    const fs::path target = fs::read_symlink(folder(pid) / "fd" / std::to_string(fd), error);
    // The link shows a path, or "socket:[…]" and the like. It may not be readable for another
    // user's process.
    return std::string(known->name) + " on " +
           (error ? "descriptor " + std::to_string(fd) : target.string());
}

// The letters are those of proc(5).
const char* state_name(char state) {
    switch (state) {
        case 'R':
            return "runs";
        case 'S':
            return "sleeps";
        case 'D':
            return "waits for a device or a file system (D)";
        case 'T':
            return "is stopped by a signal";
        case 't':
            return "is stopped by a debugger";
        case 'Z':
            return "has ended";
        default:
            return "is idle";
    }
}

// The name before the state may contain spaces and parentheses, so the search starts from the end.
char state_of(const fs::path& thread) {
    const std::string stat = first_line(thread / "stat");
    const auto at = stat.rfind(") ");
    return at == std::string::npos || at + 2 >= stat.size() ? '?' : stat[at + 2];
}

// Lines read "[<0>] futex_wait_queue+0x63/0x90", the innermost function first. Usually only root
// may read this file. Without it, "wchan" at least has the innermost function.
std::string kernel_frames(const fs::path& thread) {
    std::string frames;
    std::istringstream stack(read_small_file(thread / "stack"));
    std::string line;
    for (std::size_t count = 0; count < kKernelFrames && std::getline(stack, line); ++count) {
        const auto from = line.find("] ");
        if (from == std::string::npos) continue;
        const std::string name = line.substr(from + 2, line.find('+') - from - 2);
        frames += (frames.empty() ? "" : " < ") + name;
    }
    if (!frames.empty()) return frames;
    const std::string channel = first_line(thread / "wchan");
    return channel == "0" ? std::string() : channel;
}

std::string thread_line(const fs::path& thread, Process pid) {
    std::string line = "thread " + thread.filename().string() + " (" + first_line(thread / "comm") +
                       ") " + state_name(state_of(thread));
    if (const std::string call = call_name(thread, pid); !call.empty()) line += " in " + call;
    if (const std::string frames = kernel_frames(thread); !frames.empty())
        line += "; kernel: " + frames;
    return line;
}

}  // namespace

char process_state(Process pid) { return state_of(folder(pid)); }

std::string kernel_line(Process pid, Process thread) {
    return thread_line(folder(pid) / "task" / std::to_string(thread), pid);
}

// `all` grows while the loop runs, so that grandchildren are found, too.
std::vector<Process> with_children(Process pid, std::size_t most) {
    std::vector<Process> all{pid};
    for (std::size_t i = 0; i < all.size() && all.size() < most; ++i)
        for (const Process thread : threads_of(all[i])) {
            std::istringstream children(
                first_line(folder(all[i]) / "task" / std::to_string(thread) / "children"));
            for (Process child; children >> child && all.size() < most;) all.push_back(child);
        }
    return all;
}

}  // namespace ddprun::agent
