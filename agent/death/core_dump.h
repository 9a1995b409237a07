// Works out where a core dump is, as far as kernel.core_pattern tells. Pure. Source: core(5).
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::agent {

// What the name of a dump depends on.
struct CoreDumpFacts {
    std::string pattern;            // kernel.core_pattern
    bool uses_pid = false;          // kernel.core_uses_pid
    std::string working_directory;  // in which the worker was started
    std::int64_t pid = 0;
    int signal = 0;
    std::string hostname;
};

// Returns "/data/core.4711", "see coredumpctl info 4711" or "handed to apport". Parts of the
// pattern that only the kernel can fill in (%t, %e, …) stay as they are.
std::string core_dump_place(const CoreDumpFacts& facts);

}  // namespace ddprun::agent
