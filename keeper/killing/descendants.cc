// Reads the children of processes from /proc.
#include "keeper/killing/descendants.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "base/system/own_proc.h"
#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

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

}  // namespace

std::vector<std::int64_t> threads_of(std::int64_t pid) {
    std::vector<std::int64_t> found;
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    for_each_number(folder.c_str(), [&](pid_t thread) { found.push_back(thread); });
    std::ranges::sort(found);
    return found;
}

std::vector<pid_t> find_descendants(pid_t root) {
    std::vector<pid_t> found;
    if (!proc_is_ours()) return found;
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

std::vector<pid_t> find_children(pid_t parent) {
    std::vector<pid_t> found;
    if (!proc_is_ours()) return found;
    if (kernel_lists_children()) {
        append_children(parent, found);
        return found;
    }
    const std::multimap<pid_t, pid_t> children = all_children();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
    return found;
}

bool is_living_child(pid_t pid) {
    siginfo_t ended{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0;
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

}  // namespace ddprun::agent
