// Names the ranks that want the keyboard.
#include "agent/workers/keyboard_line.h"

#include <algorithm>
#include <vector>

namespace ddprun::agent {
namespace {

constexpr std::size_t kWaitingNamed = 3;

std::string named(const std::vector<int>& ranks) {
    const std::size_t named = std::min(ranks.size(), kWaitingNamed);
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < named; ++i) {
        if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
        text += std::to_string(ranks[i]);
    }
    return ranks.size() > named ? text + " and " + std::to_string(ranks.size() - named) + " more"
                                : text;
}

}  // namespace

std::string keyboard_line(const Keyboard& keyboard, bool ours,
                          const std::map<std::int64_t, int>& ranks_by_pid) {
    std::vector<int> waiting;
    for (const std::int64_t pid : keyboard.waiting())
        if (const auto found = ranks_by_pid.find(pid); found != ranks_by_pid.end())
            waiting.push_back(found->second);
    const std::string wait = waiting.size() == 1 ? " waits" : " wait";
    if (!ours)
        return waiting.empty() ? ""
                               : named(waiting) + wait +
                                     " for the keyboard, but ddprun runs in the background: fg";
    const auto holder = ranks_by_pid.find(keyboard.holder());
    if (holder == ranks_by_pid.end()) return {};
    const std::string has = "rank " + std::to_string(holder->second) + " has the keyboard";
    return waiting.empty() ? has : has + "; " + named(waiting) + wait + " for it";
}

}  // namespace ddprun::agent
