// What Slurm says about absent hosts (out_of_service.h).
#include "rendezvous/parts/out_of_service.h"

#include <chrono>

#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {
namespace {

// Slurm's answer may change while the leader waits.
constexpr auto kAskAgain = std::chrono::minutes{1};

}  // namespace

void OutOfServiceNodes::gathering(Time now, Ask when) {
    ask_at_ = when == Ask::never ? kNever : when == Ask::later ? now + kAskAgain : now;
}

std::vector<std::string> OutOfServiceNodes::ask(Time now, const std::vector<std::string>& nodes) {
    ask_at_ = now + kAskAgain;
    std::set<std::string> hosts;
    for (const std::string& node : nodes) hosts.insert(host_of(node));
    return {hosts.begin(), hosts.end()};
}

bool OutOfServiceNodes::said(const std::map<std::string, std::string>& states) {
    if (states == states_) return false;
    states_ = states;
    return true;
}

bool OutOfServiceNodes::contains(const std::string& node) const {
    return states_.contains(host_of(node));
}

std::vector<std::string> OutOfServiceNodes::of(const std::vector<std::string>& nodes) const {
    std::vector<std::string> names;
    for (const std::string& node : nodes)
        if (const auto found = states_.find(host_of(node)); found != states_.end())
            names.push_back(node + " (" + found->second + ")");
    return names;
}

}  // namespace ddprun::rendezvous
