#include "agent/death/core_dump.h"

namespace ddprun::agent {
namespace {

// The program of "|/usr/lib/systemd/systemd-coredump %P %u …", without its folder.
std::string program_of(const std::string& pattern) {
    const std::string path = pattern.substr(1, pattern.find(' ') - 1);
    return path.substr(path.rfind('/') + 1);
}

}  // namespace

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
            name += {'%', c};
    }
    if (facts.uses_pid && !has_pid) name += "." + pid;
    if (name.empty()) name = "core";  // what the kernel takes then
    return name.starts_with('/') ? name : facts.working_directory + "/" + name;
}

}  // namespace ddprun::agent
