// Plays the first generation with the nodes that the plan expects.
#include "launcher/dry_run/first_generation.h"

#include <algorithm>
#include <vector>

#include "launcher/plan/agent_config.h"
#include "rendezvous/rules/rank_assignment.h"
#include "rendezvous/rules/restart_policy.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Assignment;
using rendezvous::Candidate;
using rendezvous::NodeId;

constexpr const char* kMeeting = "found when the nodes meet";

std::string both(const std::string& a, const std::string& b) {
    return a + (a.empty() || b.empty() ? "" : " and ") + b;
}

// The nodes as they would join. This node offers what it really has; the others are taken to be
// like it.
std::vector<Candidate> candidates_of(const JobInput& input, const NodeId& self) {
    const Plan& plan = input.plan;
    const auto& names = plan.limits.order;
    // With tasks as nodes, node_rank (SLURM_PROCID) need not be the index in this list, so a task
    // is found by its name.
    const auto mine =
        plan.task
            ? static_cast<std::size_t>(std::ranges::find(names, plan.node_name) - names.begin())
            : static_cast<std::size_t>(plan.node_rank.value_or(0));
    std::vector<Candidate> candidates;
    const auto count =
        names.empty() ? static_cast<std::size_t>(std::min(plan.limits.max_nodes, kMostNodesShown))
                      : names.size();
    for (std::size_t i = 0; i < count; ++i) {
        Candidate one{{names.empty() ? "" : names[i], Incarnation{i + 1}}, {}};
        if (i == mine) one = {self, offer_of(input, plan.lead == Lead::yes)};
        one.offer.slots = plan.slots, one.offer.role = plan.workers.role;
        one.offer.node_rank = static_cast<int>(i);
        candidates.push_back(std::move(one));
    }
    return candidates;
}

}  // namespace

Doubts doubts_of(const Plan& plan, const StepToCome* step) {
    Doubts doubts;
    if (step && !step->workers_known) doubts.workers = "depends on the workers of each node";
    if (plan.limits.max_nodes == 1 && plan.limits.order.size() <= 1) return doubts;
    // The place of this node is open if nobody numbers the nodes, if more nodes may come than take
    // part (then the first ones do), or if Slurm's order of tasks is not known.
    doubts.place = !plan.node_rank ||
                   plan.limits.order.size() > static_cast<std::size_t>(plan.limits.max_nodes) ||
                   (plan.task && !plan.task->order_known);
    // A range such as 1:1000000 is shown for the largest number of nodes that Slurm allows.
    const int shown = std::min(plan.limits.max_nodes, kMostNodesShown);
    if (shown < plan.limits.max_nodes)
        doubts.if_all_come = "if " + std::to_string(shown) + " nodes come";
    else if (plan.limits.min_nodes < plan.limits.max_nodes)
        doubts.if_all_come = "if all " + std::to_string(shown) + " nodes come";
    if (plan.slots_counted)
        doubts.if_equal = "if each node has " + std::to_string(plan.slots) +
                          (plan.slots == 1 ? " worker" : " workers") + ", as this one";
    return doubts;
}

Assignment first_generation(const JobInput& input, const NodeId& self) {
    Assignment assignment;
    assignment.generation = Generation{0};
    assignment.members = rendezvous::assign_ranks(
        candidates_of(input, self), {}, input.plan.limits.order, input.plan.limits.max_nodes);
    assignment.world_size = rendezvous::world_size(assignment.members);
    assignment.max_restarts = rendezvous::restart_budget(input.plan.limits.max_restarts);
    return assignment;
}

std::string Places::no_place() const { return doubts.place ? kMeeting : ""; }

std::string Places::no_rank() const { return doubts.place ? kMeeting : doubts.workers; }

Known<int> Places::rank(const rendezvous::Member& member, int local_rank) const {
    if (!doubts.place && member.rank_offset == 0) return {local_rank, ""};
    return with_doubt(member.rank_offset + local_rank, no_rank(),
                      both(doubts.if_all_come, doubts.if_equal));
}

std::string Places::of_world() const { return both(doubts.if_all_come, doubts.if_equal); }

}  // namespace ddprun::launcher
