// What the kernel says about processes that it killed for lack of memory, as texts: where our
// control group counts them, what the count is, and whom a line of the kernel's log names. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

// Files that may hold the count, the likeliest first, from the text of /proc/self/cgroup: of
// version 1 memory.oom_control, of version 2 memory.events. In a container the path that is named
// may not be the one that is seen, so the mount's own root is among them.
std::vector<std::string> memory_kill_files(std::string_view proc_self_cgroup);

// "oom_kill 3" in either file; nothing where the kernel does not count.
std::optional<long> memory_kill_count(std::string_view file);

// The process that a record of /dev/kmsg says was killed: "6,1,2,-;Memory cgroup out of memory:
// Killed process 4711 (python3) …". Nothing for any other record.
std::optional<long> memory_kill_process(std::string_view record);

}  // namespace ddprun::agent
