// Reads the node states in the output of sinfo.
#include "slurm/node_states.h"

#include <algorithm>
#include <array>

namespace ddprun::slurm {
namespace {

// States in which a node does not come back soon, in the long form of sinfo (%T).
constexpr std::array<std::string_view, 9> kOut = {"drained",      "draining",      "down",
                                                  "fail",         "failing",       "power_down",
                                                  "powered_down", "powering_down", "inval"};

// sinfo appends one or more signs to a state: `*` for a node that does not answer, others for power
// and reservations. They do not change whether the node is in service.
constexpr std::string_view kSigns = "*~#!%$@^-+";

}  // namespace

std::map<std::string, std::string> nodes_out_of_service(std::string_view text) {
    std::map<std::string, std::string> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t blank = line.find(' ');
        // A line without a state, or without a name, says nothing.
        if (blank == 0 || blank == std::string_view::npos) continue;
        std::string_view state = line.substr(blank + 1);
        state = state.substr(0, state.find_first_of(kSigns));
        if (std::ranges::find(kOut, state) != kOut.end()) out.emplace(line.substr(0, blank), state);
    }
    return out;
}

}  // namespace ddprun::slurm
