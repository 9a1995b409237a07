// Nodes that are missing, and that Slurm has taken out of service: the part of the rendezvous
// machine that asks for them, and does not wait for them. What Slurm says proves nothing of their
// workers, so it decides about waiting alone: who may follow a generation stays the lease's matter.
#include <set>

#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {
namespace {

constexpr auto kAskAgain = std::chrono::minutes{1};

}  // namespace

// A start waits for nodes that are only slow: it is asked about those a minute later. Where it is
// not known who may come at all, nobody is given up.
Time Machine::State::first_question(Time now) const {
    if (!config.in_slurm || config.outside || config.limits.order.empty()) return kNever;
    return top ? now : now + kAskAgain;
}

// Who is connected comes back by itself, drained or not.
std::vector<std::string> Machine::State::unheard(const std::vector<std::string>& missing) const {
    std::set<std::string_view> connected;
    for (const auto& [id, node] : roster.nodes())
        if (node.connected()) connected.insert(id.name);
    std::vector<std::string> names;
    for (const std::string& name : missing)
        if (!connected.contains(name)) names.push_back(name);
    return names;
}

void Machine::State::ask_about(Time now, const std::vector<std::string>& missing) {
    if (now < ask_slurm_at) return wake_at(ask_slurm_at);
    ask_slurm_at = now + kAskAgain;
    wake_at(ask_slurm_at);
    std::set<std::string> hosts;
    for (const std::string& name : unheard(missing)) hosts.insert(host_of(name));
    if (!hosts.empty()) effects.push_back(AskNodeStates{{hosts.begin(), hosts.end()}});
}

// What it changes is looked at, and said, at once.
void Machine::State::on_out_of_service(Time now, const OutOfService& said) {
    if (said.nodes == out_of_service) return;
    out_of_service = said.nodes;
    next_word = std::min(next_word, now);
}

std::vector<std::string> Machine::State::given_up_of(
    const std::vector<std::string>& missing) const {
    std::vector<std::string> names;
    if (out_of_service.empty()) return names;
    for (const std::string& name : unheard(missing))
        if (const auto found = out_of_service.find(host_of(name)); found != out_of_service.end())
            names.push_back(name + " (" + found->second + ")");
    return names;
}

bool Machine::State::given_up(const NodeId& id) const {
    const NodeState* node = roster.find(id);
    return out_of_service.contains(host_of(id.name)) && !(node && node->connected());
}

}  // namespace ddprun::rendezvous
