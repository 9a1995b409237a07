// The small files in which the kernel tells of processes and of the machine. Shell; any thread;
// never waits, since a worker may have put a FIFO in a file's place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ddprun {

// From where the descriptor stands, so many bytes at most.
std::string read_bounded(int file, std::size_t most = SIZE_MAX);

// Empty where it cannot be read.
std::string read_small_file(const std::string& path);

}  // namespace ddprun
