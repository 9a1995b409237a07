// Recognizes janitor processes by what /proc says about them.
#include "keeper/killing/janitor.h"

#include <csignal>
#include <cstdlib>
#include <string>

#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

// The kernel keeps the first 15 characters of "torch_shm_manager".
constexpr const char* kOfTensors = "torch_shm_manag\n";

std::string read_of(pid_t pid, const char* file) {
    return read_small_file("/proc/" + std::to_string(pid) + '/' + file);
}

// Returns the text after a name in /proc/PID/status, whose lines read "Name:<tab>value".
std::string field(const std::string& status, const std::string& name) {
    const auto at = status.find('\n' + name + ":\t");
    if (at == status.npos) return {};
    const auto begin = at + name.size() + 3;
    return status.substr(begin, status.find('\n', begin) - begin);
}

// Reading /proc/PID/cmdline takes the lock of the process's memory and may wait forever if the
// process hangs while it holds this lock. So it is read only when the process is stopped and has
// one thread: then nothing holds the lock.
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

bool may_be_janitor(pid_t pid) {
    const std::string name = read_of(pid, "comm");
    if (name == kOfTensors) return true;
    if (!name.starts_with("python")) return false;
    constexpr unsigned long long kBoth = 1ULL << (SIGINT - 1) | 1ULL << (SIGTERM - 1);
    const std::string ignored = field(read_of(pid, "status"), "SigIgn");
    return (std::strtoull(ignored.c_str(), nullptr, 16) & kBoth) == kBoth;
}

Janitor janitor(pid_t pid) {
    const std::string name = read_of(pid, "comm");
    if (name == kOfTensors) return Janitor::of_tensors;
    return name.starts_with("python") ? python_janitor(pid) : Janitor::none;
}

}  // namespace ddprun::agent
