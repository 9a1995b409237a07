// Makes room for many descriptors: one connection for each node and a few pipes for each worker.
//
// It raises the soft limit to the hard limit, and it makes the kernel enlarge the process's
// descriptor table at once. Why at once: the table doubles each time it is full. In a process with
// several threads each growth waits until all CPUs have passed a quiescent state (synchronize_rcu()
// in expand_fdtable(), fs/file.c). That takes 8 to 20 ms on an idle machine, and in this time no
// worker starts and no node gets an answer. A process with one thread does not wait. So call this
// before the first thread starts. The table costs 8 bytes of kernel memory for each descriptor.
#pragma once

#include <cstdint>
#include <optional>

namespace ddprun {

// Size of the table. It is smaller where the limit is smaller.
inline constexpr std::uint64_t kDescriptorRoom = 16'384;

// Returns the soft limit from before, because workers get that one. Empty when it cannot be read.
std::optional<std::uint64_t> make_room_for_descriptors();

}  // namespace ddprun
