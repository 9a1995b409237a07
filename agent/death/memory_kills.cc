// Parses what the kernel says about processes that it killed for lack of memory.
#include "agent/death/memory_kills.h"

#include <charconv>

namespace ddprun::agent {
namespace {

// The number directly after the first occurrence of `words`.
std::optional<long> number_after(std::string_view text, std::string_view words) {
    const auto at = text.find(words);
    if (at == text.npos) return std::nullopt;
    long value = 0;
    const char* begin = text.data() + at + words.size();
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    return error == std::errc() && end != begin ? std::optional(value) : std::nullopt;
}

// Whether a comma-separated list of cgroup controllers contains "memory".
bool names_memory(std::string_view controllers) {
    while (!controllers.empty()) {
        const auto comma = controllers.find(',');
        if (controllers.substr(0, comma) == "memory") return true;
        if (comma == controllers.npos) break;
        controllers.remove_prefix(comma + 1);
    }
    return false;
}

}  // namespace

// Version 1 comes first: where both are mounted, the memory controller belongs to version 1.
std::vector<std::string> memory_kill_files(std::string_view text) {
    const std::string root = "/sys/fs/cgroup";
    std::vector<std::string> first, second;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        // A line reads "id:controllers:path". Version 2 has an empty list of controllers.
        const auto one = line.find(':'), two = line.find(':', one + 1);
        if (one == line.npos || two == line.npos) continue;
        const std::string_view controllers = line.substr(one + 1, two - one - 1);
        // The root group has the path "/", which must not give a double slash.
        const std::string path =
            line.substr(two + 1) == "/" ? "" : std::string(line.substr(two + 1));
        if (names_memory(controllers)) {
            first.push_back(root + "/memory" + path + "/memory.oom_control");
            if (!path.empty()) first.push_back(root + "/memory/memory.oom_control");
        } else if (controllers.empty()) {
            second.push_back(root + path + "/memory.events");
            if (!path.empty()) second.push_back(root + "/memory.events");
        }
    }
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

std::optional<long> memory_kill_count(std::string_view file) {
    // The word must be at the beginning of a line, because the files also have "oom_kill_disable 0"
    // and "oom_group_kill 0".
    if (file.starts_with("oom_kill ")) return number_after(file, "oom_kill ");
    return number_after(file, "\noom_kill ");
}

// A record is "priority,number,time,flags;text". Lines about other kills do not mention memory.
std::optional<long> memory_kill_process(std::string_view record) {
    const auto text = record.find(';');
    if (text == record.npos) return std::nullopt;
    const std::string_view said = record.substr(text);
    // "ut of memory" finds "Out of memory" and "out of memory".
    if (said.find("ut of memory") == said.npos && said.find("oom") == said.npos)
        return std::nullopt;
    return number_after(said, "Killed process ");
}

}  // namespace ddprun::agent
