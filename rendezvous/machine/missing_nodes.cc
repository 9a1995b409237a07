// Knows which nodes are absent while the leader gathers, asks Slurm about them, and judges which
// members were silent when a worker failed. Part of the rendezvous machine.
#include <set>
#include <string_view>

#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {

// If the expected nodes are not known, no node is given up, so Slurm is not asked.
void MachineState::gather_anew(Time now) {
    gathering.begin(now);
    const bool asks = config.in_slurm && !config.outside && !limits().order.empty();
    using Ask = OutOfServiceNodes::Ask;
    out_of_service.gathering(now, !asks ? Ask::never : begins_allocation() ? Ask::later : Ask::now);
}

std::vector<std::string> MachineState::missing(const std::vector<Candidate>& here) const {
    std::vector<std::string> names;
    std::set<std::string_view> known;
    for (const Candidate& candidate : here) known.insert(candidate.node.name);
    const auto absent = [&](const std::string& name) {
        return !known.contains(name) && !record.is_drained(name);
    };
    // The expected nodes if they are known, else the members of the last generation.
    if (!limits().order.empty()) {
        for (const std::string& name : limits().order)
            if (absent(name)) names.push_back(name);
    } else if (!begins_allocation()) {
        for (const Member& member : top()->assignment.members)
            if (absent(member.node.name)) names.push_back(member.node.name);
    }
    return names;
}

// A connected node comes back by itself, drained or not.
std::vector<std::string> MachineState::unheard(const std::vector<std::string>& missing) const {
    std::set<std::string_view> connected;
    for (const auto& [id, node] : roster.nodes())
        if (node.connected()) connected.insert(id.name);
    std::vector<std::string> names;
    for (const std::string& name : missing)
        if (!connected.contains(name)) names.push_back(name);
    return names;
}

void MachineState::ask_about(Time now, const std::vector<std::string>& missing) {
    if (now < out_of_service.asks_at()) return wake_at(out_of_service.asks_at());
    const std::vector<std::string> hosts = out_of_service.ask(now, unheard(missing));
    wake_at(out_of_service.asks_at());
    if (!hosts.empty()) out.add(AskNodeStates{hosts});
}

// An answer with news changes for which nodes the leader waits, so the next count logs it at once.
void MachineState::on_out_of_service(Time now, const OutOfService& said) {
    if (out_of_service.said(said.nodes)) gathering.speak_soon(now);
}

bool MachineState::given_up(const NodeId& id) const {
    const NodeState* node = roster.find(id);
    return out_of_service.contains(id.name) && !(node && node->connected());
}

std::vector<Absent> MachineState::absent_members() const {
    std::vector<Absent> absent;
    for (const Member& member : top()->assignment.members) {
        const NodeState* node = roster.find(member.node);
        if ((node && is_back(*node)) || unusable.contains(member.node.name)) continue;
        Time heard = node ? node->beat_came : kLongAgo;
        // A new leader never heard the previous one, but the nodes did: facts.led() is when they
        // heard it last.
        if (member.node == top()->at.node) heard = std::max(heard, facts.led());
        absent.push_back({member.node, heard > kLongAgo ? std::optional(heard) : std::nullopt});
    }
    return absent;
}

// All nodes get the result, since the next leader cannot know it.
void MachineState::judge_silence(Time now) {
    if (single() || !facts.failure() || facts.silent()) return;
    const Time at = silence_is_known_at(facts, beat_period());
    if (now < at) return wake_at(at);
    std::vector<NodeId> silent;
    for (const Absent& absent : absent_members())
        if (silent_since_failure(facts, absent, beat_period())) silent.push_back(absent.node);
    facts.not_heard(silent);
}

}  // namespace ddprun::rendezvous
