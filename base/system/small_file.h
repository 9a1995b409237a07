// Reads the small files in which the kernel describes processes and the machine.
//
// Thread: any. The functions never wait, even if a worker has put a FIFO in the file's place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ddprun {

// Reads from the descriptor's current position, at most `most` bytes. Stops at the first error.
std::string read_bounded(int file, std::size_t most = SIZE_MAX);

// Returns the whole text; empty when the file cannot be read.
std::string read_small_file(const std::string& path);

}  // namespace ddprun
