// Parses what the kernel says about processes that it killed for lack of memory: where our cgroup
// counts them, the count, and which process a line of the kernel's log names. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

// Returns files that may hold the count, the most likely first. The argument is the text of
// /proc/self/cgroup. The count is in memory.oom_control (cgroup version 1) or memory.events
// (version 2). In a container the path in the text may not exist, so the root of the mount is a
// candidate, too.
std::vector<std::string> memory_kill_files(std::string_view proc_self_cgroup);

// The number after "oom_kill" in either file; nothing if the kernel does not count.
std::optional<long> memory_kill_count(std::string_view file);

// Returns the pid if a record of /dev/kmsg says that a process was killed: "6,1,2,-;Memory cgroup
// out of memory: Killed process 4711 (python3) …". Nothing for any other record.
std::optional<long> memory_kill_process(std::string_view record);

}  // namespace ddprun::agent
