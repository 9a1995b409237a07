// Has a process of Python write its functions as its last words, where nobody may read them from
// outside: SIGABRT and Python's fault handler do that, whoever holds the GIL.
//
// Thread: the loop's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace ddprun::agent {

// How long it may take, and how many lines of output it may be: Python writes up to a hundred
// threads.
inline constexpr auto kLastWordsTake = std::chrono::seconds{1};
inline constexpr std::size_t kLastWordsLines = 2000;

// Sends SIGABRT. A core dump would be gigabytes, and nobody has asked for it: without this,
// generations that hang are ended by SIGTERM. With a limit of one byte the kernel neither writes a
// file nor calls the program of core_pattern (core(5)). False: the limit cannot be set, as for
// another user's process, and nothing was sent.
bool abort_without_core(std::int64_t pid);

}  // namespace ddprun::agent
