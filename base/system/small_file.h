// Reads the small files in which the kernel describes processes and the machine.
//
// Thread: any. The functions never wait, even if a worker has put a FIFO in the file's place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/system/unique_fd.h"

namespace ddprun {

// Reads from the descriptor's current position, at most `most` bytes. Stops at the first error.
std::string read_bounded(int file, std::size_t most = SIZE_MAX);

// Returns the whole text; empty when the file cannot be read.
std::string read_small_file(const std::string& path);

// A file of at most 4 KiB that is read again and again: it stays open, so each time takes one
// system call and not four. It may be one of /proc, which has new text each time. While this
// process has many files open, it is opened anew each time. Thread: one at a time.
class KeptFile {
  public:
    explicit KeptFile(std::string path) : path_(std::move(path)) {}
    // Empty when it cannot be read, for example since the process has ended.
    std::string read();

  private:
    std::string path_;
    UniqueFd file_;
};

}  // namespace ddprun
