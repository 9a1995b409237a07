// Collects the living descendants of the keeper from /proc.
#include "agent/death/stuck_processes.h"

#include "base/system/small_file.h"
#include "keeper/killing/descendants.h"

namespace ddprun::agent {

std::vector<StuckProcess> find_stuck(pid_t keeper, const std::map<std::int64_t, int>& ranks) {
    std::vector<StuckProcess> found;
    for (const pid_t pid : find_descendants(keeper)) {
        const std::string folder = "/proc/" + std::to_string(pid);
        StuckProcess process = read_process_stat(read_small_file(folder + "/stat"));
        // A zombie (Z) or a dead process (X) only waits to be reaped.
        if (process.pid == 0 || process.state == 'Z' || process.state == 'X') continue;
        process.waits_in = read_small_file(folder + "/wchan");
        // The kernel writes "0" when the process waits nowhere, or when it hides the place.
        if (process.waits_in == "0") process.waits_in.clear();
        if (const auto rank = ranks.find(pid); rank != ranks.end()) process.rank = rank->second;
        found.push_back(std::move(process));
    }
    return found;
}

}  // namespace ddprun::agent
