#include "slurm/node_states.h"

#include <algorithm>
#include <array>

namespace ddprun::slurm {
namespace {

constexpr std::array<std::string_view, 9> kOut = {"drained",      "draining",      "down",
                                                  "fail",         "failing",       "power_down",
                                                  "powered_down", "powering_down", "inval"};

constexpr std::string_view kSigns = "*~#!%$@^-+";

}  // namespace

std::map<std::string, std::string> nodes_out_of_service(std::string_view text) {
    std::map<std::string, std::string> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t blank = line.find(' ');
        if (blank == 0 || blank == std::string_view::npos) continue;
        std::string_view state = line.substr(blank + 1);
        state = state.substr(0, state.find_first_of(kSigns));
        if (std::ranges::find(kOut, state) != kOut.end()) out.emplace(line.substr(0, blank), state);
    }
    return out;
}

}  // namespace ddprun::slurm
