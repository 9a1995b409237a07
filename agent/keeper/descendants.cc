// Finds, stops, kills and reaps all descendants of this process.
#include "agent/keeper/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "base/system/boot_clock.h"
#include "base/system/small_file.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

// How often one round looks for new processes. A program that forks faster than this meets SIGKILL
// and the next round.
constexpr int kLooks = 100;
// How long a round waits for a process to stop, to find out whether it is a janitor.
constexpr Duration kPatience = std::chrono::milliseconds{200};

// Calls `each` with every entry of a folder that is a number: in /proc a process, in /proc/PID/task
// a thread.
template <class Each>
void for_each_number(const char* folder, Each each) {
    DIR* dir = ::opendir(folder);
    if (dir == nullptr) return;
    while (const dirent* entry = ::readdir(dir)) {
        const pid_t number = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
        if (number > 0) each(number);
    }
    ::closedir(dir);
}

// A child belongs to the thread that forked it, so the lists of all threads are read.
void append_children(pid_t parent, std::vector<pid_t>& out) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task", parent);
    for_each_number(path, [&](pid_t thread) {
        std::snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, thread);
        const std::string list = read_small_file(path);
        for (const char* at = list.c_str(); *at != '\0';) {
            char* end = nullptr;
            const long pid = std::strtol(at, &end, 10);
            if (end == at) break;
            if (pid > 0) out.push_back(static_cast<pid_t>(pid));
            at = end + std::strspn(end, " ");
        }
    });
}

// The slow way, for kernels without /proc/PID/task/TID/children: reads the parent of every process
// on the host.
std::multimap<pid_t, pid_t> all_children() {
    std::multimap<pid_t, pid_t> children;
    for_each_number("/proc", [&](pid_t pid) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
        const std::string stat = read_small_file(path);
        // The format is "PID (NAME) STATE PPID …". NAME may contain spaces and parentheses, so the
        // fields start after the last parenthesis.
        const std::size_t name_end = stat.rfind(')');
        if (name_end == stat.npos || name_end + 4 > stat.size()) return;
        children.emplace(static_cast<pid_t>(std::atol(stat.c_str() + name_end + 4)), pid);
    });
    return children;
}

// The file needs CONFIG_PROC_CHILDREN. The answer is the same for the life of the process.
bool kernel_lists_children() {
    static const bool listed = ::access("/proc/thread-self/children", R_OK) == 0;
    return listed;
}

// If the process has ended in the meantime, kill() fails. This is not an error here.
void send(pid_t pid, int signal) { ::kill(pid, signal); }

// Waits until a child ends, or for a few milliseconds: a descendant that is not our child yet
// becomes our child when its parent dies, and the kernel does not announce that.
void wait_a_little(pid_t child) {
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    pollfd wait{pidfd.get(), POLLIN, 0};
    ::poll(&wait, 1, pidfd ? 5 : 1);
}

}  // namespace

std::vector<pid_t> find_descendants(pid_t root) {
    std::vector<pid_t> found;
    if (kernel_lists_children()) {
        append_children(root, found);
        // `found` grows while the loop runs: the children of the children are looked up, too.
        for (std::size_t i = 0; i < found.size(); ++i) append_children(found[i], found);
        return found;
    }
    const std::multimap<pid_t, pid_t> children = all_children();
    found.push_back(root);
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto [first, last] = children.equal_range(found[i]);
        for (auto child = first; child != last; ++child) found.push_back(child->second);
    }
    found.erase(found.begin());
    return found;
}

bool reap_children(const Reaped& reaped) {
    for (;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            if (reaped) reaped(pid, status);
        } else if (pid == 0) {
            return false;
        } else if (errno != EINTR) {
            // ECHILD: this process has no children. As a subreaper it would inherit every orphan
            // below it, so nothing is left.
            return true;
        }
    }
}

// Returns the stopped processes, sorted by pid. Why stop before killing: a process that dies may
// leave children behind that fork again, while a stopped process cannot fork. The search repeats
// until a pass finds no new process. Janitors that still have time are left out.
std::vector<pid_t> Killing::stop_all(Time now) const {
    const pid_t self = ::getpid();
    std::vector<pid_t> stopped;
    for (int look = 0; look < kLooks; ++look) {
        bool found_new = false;
        for (const pid_t pid : find_descendants(self)) {
            const auto place = std::lower_bound(stopped.begin(), stopped.end(), pid);
            if (place != stopped.end() && *place == pid) continue;
            const auto spared = janitors_.find(pid);
            if (spared != janitors_.end() && now < spared->second.until) continue;
            stopped.insert(place, pid);
            found_new = true;
            send(pid, SIGSTOP);
        }
        if (!found_new) break;
    }
    return stopped;
}

// Decides whether a stopped process is a janitor that may finish its work first.
bool Killing::spare(pid_t pid, Time now) {
    // It was spared before, and stop_all() stops it only when its time is over.
    if (janitors_.contains(pid)) return false;
    const Janitor kind = janitor(pid);
    if (kind == Janitor::none) return false;
    // SIGSTOP may take a moment to arrive. The next round asks again.
    if (kind == Janitor::unknown) return now < began_ + kPatience;
    janitors_[pid] = {kind, now + patience_with(kind)};
    send(pid, SIGCONT);
    return true;
}

// Called again and again until it returns true. It never blocks, so that the keeper can watch the
// deadline between two rounds.
bool Killing::round(const Reaped& reaped) {
    const Time now = boot_now();
    if (began_ == kNever) began_ = now;
    const std::vector<pid_t> stopped = stop_all(now);
    for (const pid_t pid : stopped) {
        memory_.belongs(pid);
        if (!spare(pid, now)) send(pid, SIGKILL);
    }
    // The pids of dead processes are recorded, too: the names of their objects in shared memory
    // contain them.
    if (!reap_children([&](pid_t pid, int status) {
            memory_.belongs(pid);
            if (reaped) reaped(pid, status);
        })) {
        // Only janitors are left. PyTorch's janitor is slow, and it is needed only for tensors
        // whose process we do not know. If there are none, its time ends now.
        if (stopped.empty() && !memory_.tensors_of_unknown())
            for (auto& [pid, spared] : janitors_)
                if (spared.kind == Janitor::of_tensors) spared.until = now;
        return false;
    }
    // Only now, when no process can create or open another object.
    memory_.remove();
    janitors_.clear();
    began_ = kNever;
    return true;
}

bool kill_all_descendants(Duration limit, const Reaped& reaped) {
    const Time give_up = boot_now() + limit;
    Killing killing;
    while (!killing.round(reaped)) {
        if (boot_now() >= give_up) return false;
        siginfo_t ended{};
        // WNOWAIT leaves the zombie in place: the next round reaps it at once. Without a zombie
        // there is something to wait for.
        if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
            continue;
        const std::vector<pid_t> left = find_descendants(::getpid());
        wait_a_little(left.empty() ? 0 : left.front());
    }
    return true;
}

}  // namespace ddprun::agent
