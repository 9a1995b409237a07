// Looks at the clock and the state of a process.
#include "agent/keeper/process_pulse.h"

#include <time.h>

#include <string>

#include "base/system/own_proc.h"
#include "base/system/small_file.h"

namespace ddprun::agent::keeper {
namespace {

Duration cpu_time_of(int pid) {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
    return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
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
