// Room for many descriptors: a connection for each node, some pipes for each worker.
//
// The soft limit is raised to the hard one. And the kernel's table is grown at once: it doubles
// whenever it is full, and in a process with threads each time waits until all processors have been
// seen to pass (synchronize_rcu in fs/file.c's expand_fdtable), 8 to 20 ms on an idle machine, in
// which neither a worker is started nor a node answered. Without threads it waits for nothing, so:
// before the first one. The room costs 8 bytes of the kernel's memory each.
#pragma once

#include <cstdint>
#include <optional>

namespace ddprun {

inline constexpr std::uint64_t kDescriptorRoom = 16'384;  // less if the limit is

// Returns the soft limit as it was, for the workers. Nothing when it could not be read.
std::optional<std::uint64_t> make_room_for_descriptors();

}  // namespace ddprun
