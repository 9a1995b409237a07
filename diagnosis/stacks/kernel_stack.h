// Finds out from /proc where the threads of a living process are, without any tool: the name of
// each, its state, the system call in which it is and, where we may read it, its stack in the
// kernel.
//
// Thread: any. It waits for nothing but /proc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::agent {

using StackLines = std::vector<std::string>;

// For example "thread 812 (python3) sleeps in futex; kernel: futex_wait_queue < do_futex".
std::string kernel_line(std::int64_t pid, std::int64_t thread);

// The state letter of proc(5): 'S' sleeps, 'T' is stopped, and so on; '?' when the process is gone.
char process_state(std::int64_t pid);

// The process and its descendants, parents first, at most `most`.
std::vector<std::int64_t> with_children(std::int64_t pid, std::size_t most);

}  // namespace ddprun::agent
