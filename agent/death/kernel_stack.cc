#include "agent/death/kernel_stack.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;
using Process = std::int64_t;

constexpr std::size_t kThreads = 16, kKernelFrames = 4;

std::string first_line(const fs::path& path) {
    std::string text = read_small_file(path);
    return text.substr(0, text.find('\n'));
}

fs::path folder(Process pid) { return fs::path("/proc") / std::to_string(pid); }

struct Call {
    long number;
    const char* name;
    bool first_is_fd;
};
// Those in which programs wait.
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
#ifdef SYS_poll
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_epoll_wait, "epoll_wait", true},
    {SYS_accept, "accept", true},
    {SYS_open, "open", false},
    {SYS_pause, "pause", false},
#endif
};

// "7 0x3 0x7f…": the call's number and arguments, in hexadecimal; "running" or "-1 …": in none.
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
    std::from_chars(argument.data() + 2, argument.data() + argument.size(), fd, 16);
    std::error_code error;
    const fs::path target = fs::read_symlink(folder(pid) / "fd" / std::to_string(fd), error);
    return std::string(known->name) + " on " +
           (error ? "descriptor " + std::to_string(fd) : target.string());
}

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

char state_of(const fs::path& thread) {
    const std::string stat = first_line(thread / "stat");
    const auto at = stat.rfind(") ");
    return at == std::string::npos || at + 2 >= stat.size() ? '?' : stat[at + 2];
}

// "[<0>] futex_wait_queue+0x63/0x90": the names, innermost first; where the stack may not be read,
// the one of wchan.
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

std::vector<Process> numbered(const fs::path& path) {
    std::vector<Process> numbers;
    std::error_code error;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        Process number = 0;
        std::from_chars(name.data(), name.data() + name.size(), number);
        numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

}  // namespace

char process_state(Process pid) { return state_of(folder(pid)); }

StackLines kernel_stack(Process pid) {
    StackLines lines;
    const std::vector<Process> threads = numbered(folder(pid) / "task");
    for (std::size_t i = 0; i < std::min(threads.size(), kThreads); ++i)
        lines.push_back(thread_line(folder(pid) / "task" / std::to_string(threads[i]), pid));
    if (threads.size() > kThreads)
        lines.push_back("and " + std::to_string(threads.size() - kThreads) + " more threads");
    return lines;
}

std::vector<Process> with_children(Process pid, std::size_t most) {
    std::vector<Process> all{pid};
    for (std::size_t i = 0; i < all.size() && all.size() < most; ++i)
        for (const Process thread : numbered(folder(all[i]) / "task")) {
            std::istringstream children(
                first_line(folder(all[i]) / "task" / std::to_string(thread) / "children"));
            for (Process child; children >> child && all.size() < most;) all.push_back(child);
        }
    return all;
}

}  // namespace ddprun::agent
