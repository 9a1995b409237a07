#include "agent/keeper/janitor.h"

#include <string>

#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

std::string read_of(pid_t pid, const char* file) {
    return read_small_file("/proc/" + std::to_string(pid) + '/' + file);
}

// What stands behind a name in /proc/PID/status.
std::string field(const std::string& status, const std::string& name) {
    const auto at = status.find('\n' + name + ":\t");
    if (at == status.npos) return {};
    const auto begin = at + name.size() + 3;
    return status.substr(begin, status.find('\n', begin) - begin);
}

// Its command line is read only when it is stopped and has one thread: then nothing holds the lock
// of its memory, which that read would wait for without end in a process that hangs.
Janitor python_janitor(pid_t pid) {
    const std::string status = read_of(pid, "status");
    if (field(status, "Threads") != "1" || field(status, "State").starts_with('Z'))
        return Janitor::none;
    if (!field(status, "State").starts_with('T')) return Janitor::unknown;
    const bool tracks =
        read_of(pid, "cmdline").find("multiprocessing.resource_tracker") != std::string::npos;
    return tracks ? Janitor::of_python : Janitor::none;
}

}  // namespace

Janitor janitor(pid_t pid) {
    const std::string name = read_of(pid, "comm");
    if (name == "torch_shm_manag\n") return Janitor::of_tensors;  // as much as the kernel keeps
    return name.starts_with("python") ? python_janitor(pid) : Janitor::none;
}

}  // namespace ddprun::agent
