// Where a core dump lies, as far as kernel.core_pattern says it. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::agent {

struct CoreDumpFacts {
    std::string pattern;            // kernel.core_pattern
    bool uses_pid = false;          // kernel.core_uses_pid
    std::string working_directory;  // the worker's, as it was started
    std::int64_t pid = 0;
    int signal = 0;
    std::string hostname;
};

// "/data/core.4711", "coredumpctl info 4711", "handed to apport", or the pattern itself where it
// names what only the kernel knows (%t, %e, …).
std::string core_dump_place(const CoreDumpFacts& facts);

}  // namespace ddprun::agent
