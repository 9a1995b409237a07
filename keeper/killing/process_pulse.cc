// Looks at the CPU time and the state of a process's first thread.
#include "keeper/killing/process_pulse.h"

#include <time.h>

#include <charconv>
#include <cstdint>
#include <string>

#include "base/system/own_proc.h"
#include "base/system/small_file.h"

namespace ddprun::agent::keeper {
namespace {

// Of all its threads: what the kernel tells without /proc.
Duration cpu_time_of_all(int pid) {
    clockid_t clock{};
    timespec used{};
    // 0 would be this process.
    if (pid <= 0 || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0)
        return {};
    return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
}

// "NANOSECONDS …" of one thread. The file is missing on kernels without CONFIG_SCHED_INFO.
Duration cpu_time_of(int pid) {
    const std::string id = std::to_string(pid);
    const std::string text =
        proc_is_ours() ? read_small_file("/proc/" + id + "/task/" + id + "/schedstat") : "";
    std::int64_t used = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), used);
    return read.ec == std::errc() ? Duration{used} : cpu_time_of_all(pid);
}

// The format is "PID (NAME) STATE …", and NAME may contain parentheses.
bool is_runnable(int pid) {
    if (!proc_is_ours()) return false;
    const std::string stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = stat.rfind(')');
    return name_end != stat.npos && stat.substr(name_end).starts_with(") R");
}

}  // namespace

Pulse pulse_of(int pid) { return {cpu_time_of(pid), is_runnable(pid)}; }

}  // namespace ddprun::agent::keeper
