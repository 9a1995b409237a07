// Closes, waits or gives up, with the sentence that says why (quorum.h).
#include "rendezvous/rules/quorum.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {
namespace {

std::string counts(const QuorumInput& input, const Limits& limits) {
    std::string text = std::to_string(input.here) + " of " + std::to_string(limits.max_nodes) +
                       " " + plural_of(limits.order) + " joined";
    if (limits.min_nodes < limits.max_nodes)
        text += " (min " + std::to_string(limits.min_nodes) + ")";
    if (!input.missing.empty()) text += ", missing " + name_some(input.missing);
    return text;
}

// Where nobody knows who is to come, the user looks for who is not among these.
std::string who_came(const QuorumInput& input, const Limits& limits) {
    const bool unknown = input.missing.empty() && limits.order.empty();
    return unknown && !input.names.empty() ? ": " + name_some(input.names) : "";
}

// Whether the job must fail: even if all nodes come that Slurm has not taken out of service, there
// are fewer than min_nodes.
bool cannot_be_enough(const QuorumInput& input, const Limits& limits) {
    const std::size_t to_come = input.missing.size() - input.out_of_service.size();
    return !input.out_of_service.empty() &&
           input.here + static_cast<int>(to_come) < limits.min_nodes;
}

std::string not_awaited(const QuorumInput& input) {
    return "; not waiting for " + name_some(input.out_of_service) +
           ", which Slurm has taken out of service";
}

// No missing node can come, so a last call is pointless.
bool nobody_to_come(const QuorumInput& input) {
    return !input.missing.empty() && input.out_of_service.size() == input.missing.size();
}

std::vector<std::string> hosts_named(const std::vector<std::string>& nodes) {
    std::map<std::string, int> tasks;
    for (const std::string& node : nodes)
        if (is_task_node(node)) ++tasks[host_of(node)];
    std::vector<std::string> names;
    for (const std::string& node : nodes) {
        // The first task of a host names the host with the count of all its tasks. It sets the
        // count to 0, so the other tasks add no name.
        const auto found = is_task_node(node) ? tasks.find(host_of(node)) : tasks.end();
        if (found == tasks.end() || found->second == 1)
            names.push_back(node);
        else if (const int all = std::exchange(found->second, 0); all > 0)
            names.push_back(found->first + " (" + std::to_string(all) + " tasks)");
    }
    return names;
}

}  // namespace

std::string name_some(const std::vector<std::string>& nodes) {
    const std::vector<std::string> names = hosts_named(nodes);
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i)
        text += (i ? ", " : "") + names[i];
    if (names.size() > 3) text += " and " + std::to_string(names.size() - 3) + " more";
    return text;
}

QuorumVerdict decide_quorum(const QuorumInput& input, const Limits& limits, Time now) {
    using What = QuorumVerdict::What;
    if (input.here >= limits.max_nodes) return {What::closes, now, counts(input, limits)};
    if (input.here >= limits.min_nodes) {
        // Only the first generation has a last call: nodes may be slow at the start. After a
        // failure every second of waiting costs the whole job.
        const bool calls = input.first && !nobody_to_come(input);
        const Time last_call = calls ? input.since_min + limits.times.last_call : kLongAgo;
        const Time until = std::max(input.wait_for_members, last_call);
        if (now >= until) return {What::closes, now, counts(input, limits)};
        return {What::waits, until,
                "still waiting: " + counts(input, limits) + who_came(input, limits)};
    }
    if (cannot_be_enough(input, limits))
        return {What::impossible, now,
                "too few nodes: " + counts(input, limits) + not_awaited(input)};
    const Time give_up = input.since_gathering + limits.times.join_timeout;
    if (now >= give_up)
        return {What::impossible, now,
                "too few nodes: " + counts(input, limits) + " within " +
                    to_text(limits.times.join_timeout) + " (--join-timeout)"};
    return {What::waits, give_up,
            "still waiting: " + counts(input, limits) + who_came(input, limits) +
                (input.out_of_service.empty() ? "" : not_awaited(input)) + "; giving up in " +
                to_text(give_up - now)};
}

}  // namespace ddprun::rendezvous
