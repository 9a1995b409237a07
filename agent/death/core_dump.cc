// Works out where the kernel has put a core dump.
#include "agent/death/core_dump.h"

namespace ddprun::agent {
namespace {

// The name of the program in a pattern such as "|/usr/lib/systemd/systemd-coredump %P %u …".
std::string program_of(const std::string& pattern) {
    const std::string path = pattern.substr(1, pattern.find(' ') - 1);
    return path.substr(path.rfind('/') + 1);
}

}  // namespace

// The rules are those of core(5). A pattern that starts with '|' pipes the dump into a program; any
// other pattern is a file name.
std::string core_dump_place(const CoreDumpFacts& facts) {
    const std::string& pattern = facts.pattern;
    const std::string pid = std::to_string(facts.pid);
    if (pattern.starts_with('|')) {
        const std::string program = program_of(pattern);
        return program == "systemd-coredump" ? "see coredumpctl info " + pid
                                             : "handed to " + program;
    }
    std::string name;
    bool has_pid = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[++i] : '\0';
        if (c == '\0')
            name += pattern[i];
        else if (c == '%')
            name += '%';
        else if (c == 'p')
            name += pid, has_pid = true;
        else if (c == 's')
            name += std::to_string(facts.signal);
        else if (c == 'h')
            name += facts.hostname;
        else
            // Other specifiers (%t, %e, …) have values that only the kernel knows. They stay
            // visible, so that the user can still find the file.
            name += {'%', c};
    }
    if (facts.uses_pid && !has_pid) name += "." + pid;
    // The kernel does the same with an empty pattern.
    if (name.empty()) name = "core";
    return name.starts_with('/') ? name : facts.working_directory + "/" + name;
}

}  // namespace ddprun::agent
