// Where a living process is, as the kernel says it, without any tool: for each thread its name, its
// state, the system call it is in and, as far as we may read it, its stack in the kernel.
//
// Thread: any; it waits for nothing but /proc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::agent {

using StackLines = std::vector<std::string>;

// A line a thread, the first one first, at most sixteen:
// "thread 812 (python3) sleeps in futex; kernel: futex_wait_queue < do_futex".
StackLines kernel_stack(std::int64_t pid);

// 'S' sleeps, 'T' is stopped, …, as in proc(5); '?': it is gone.
char process_state(std::int64_t pid);

// The process and what it has started, parents first, so many at the most.
std::vector<std::int64_t> with_children(std::int64_t pid, std::size_t most);

}  // namespace ddprun::agent
