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

constexpr int kLooks =
    100;  // looks for new ones within one round; what forks faster meets SIGKILL and the next round
// With one of which it is not known yet whether it is a janitor.
constexpr Duration kPatience = std::chrono::milliseconds{200};

// Calls `each` with every entry of a folder that is a number.
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

// The children of all threads of one process, as the kernel lists them.
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

// For kernels without /proc/PID/task/TID/children: parent → children from every /proc/PID/stat.
std::multimap<pid_t, pid_t> all_children() {
    std::multimap<pid_t, pid_t> children;
    for_each_number("/proc", [&](pid_t pid) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
        const std::string stat = read_small_file(path);
        // The name may hold spaces and parentheses: the fields go on behind the last one. "… ) S
        // PPID …"
        const std::size_t name_end = stat.rfind(')');
        if (name_end == stat.npos || name_end + 4 > stat.size()) return;
        children.emplace(static_cast<pid_t>(std::atol(stat.c_str() + name_end + 4)), pid);
    });
    return children;
}

bool kernel_lists_children() {
    static const bool listed = ::access("/proc/thread-self/children", R_OK) == 0;
    return listed;
}

// One that has ended meanwhile is no mistake.
void send(pid_t pid, int signal) { ::kill(pid, signal); }

// Until a child ends, or a few milliseconds: a descendant that is not our child yet becomes one
// when its parent dies.
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
            return true;  // ECHILD
        }
    }
}

// All but the janitors that still have time; sorted.
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

bool Killing::spare(pid_t pid, Time now) {
    if (janitors_.contains(pid)) return false;  // its time is over
    const Janitor kind = janitor(pid);
    if (kind == Janitor::none) return false;
    if (kind == Janitor::unknown) return now < began_ + kPatience;  // stopped, or about to be
    janitors_[pid] = {kind, now + patience_with(kind)};
    send(pid, SIGCONT);
    return true;
}

bool Killing::round(const Reaped& reaped) {
    const Time now = boot_now();
    if (began_ == kNever) began_ = now;
    const std::vector<pid_t> stopped = stop_all(now);
    for (const pid_t pid : stopped) {
        memory_.belongs(pid);
        if (!spare(pid, now)) send(pid, SIGKILL);
    }
    if (!reap_children([&](pid_t pid, int status) {
            memory_.belongs(pid);
            if (reaped) reaped(pid, status);
        })) {
        // Only janitors are left: the slow ones are needed where others do not know better.
        if (stopped.empty() && !memory_.tensors_of_unknown())
            for (auto& [pid, spared] : janitors_)
                if (spared.kind == Janitor::of_tensors) spared.until = now;
        return false;
    }
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
        // A zombie is reaped in the next round at once; otherwise there is something to wait for.
        if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
            continue;
        const std::vector<pid_t> left = find_descendants(::getpid());
        wait_a_little(left.empty() ? 0 : left.front());
    }
    return true;
}

}  // namespace ddprun::agent
