#include "agent/stuck_processes.h"

#include <fstream>
#include <iterator>

#include "agent/descendants.h"

namespace ddprun::agent {
namespace {

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<StuckProcess> find_stuck(pid_t keeper, const std::map<std::int64_t, int>& ranks) {
    std::vector<StuckProcess> found;
    for (const pid_t pid : find_descendants(keeper)) {
        const std::string folder = "/proc/" + std::to_string(pid);
        StuckProcess process = read_process_stat(read_file(folder + "/stat"));
        if (process.pid == 0 || process.state == 'Z' || process.state == 'X') continue;
        process.waits_in = read_file(folder + "/wchan");
        if (process.waits_in == "0") process.waits_in.clear();
        if (const auto rank = ranks.find(pid); rank != ranks.end()) process.rank = rank->second;
        found.push_back(std::move(process));
    }
    return found;
}

}  // namespace ddprun::agent
