// How the job stands, for operators (job_status.h): made of the parts of the machine when somebody
// asks, and kept nowhere. Part of the rendezvous machine.
#include <algorithm>
#include <map>

#include "base/count_text.h"
#include "rendezvous/machine/machine_state.h"
#include "rendezvous/rules/restart_policy.h"

namespace ddprun::rendezvous {
namespace {

using State = NodeStatus::State;

// As many nodes are named one by one; the others are counted.
constexpr std::size_t kNamed = 3;

bool is_awaited(State state) {
    return state == State::missing || state == State::lost || state == State::gone ||
           state == State::stopping;
}

}  // namespace

JobStatus MachineState::status(Time now) const {
    JobStatus job;
    job.run_id = config.run_id;
    job.phase = to_string(phase);
    job.leader = active.self.node;
    job.requeue = config.requeue;
    job.generation = newest();
    job.runs = holding();
    job.since = day(holding() ? held()->since : gathering.since());
    job.restarts = record.restarts();
    job.max_restarts = restart_budget(limits().max_restarts);
    job.min_nodes = limits().min_nodes;
    job.max_nodes = limits().max_nodes;
    job.ends = config.ends;
    job.standstill = holding() ? standstill.told() : "";
    job.snapshot_asked = snapshot_asked();
    if (const auto regrouping = stop.regrouping()) job.stopping = *regrouping;
    if (stop.is_asked() && end.is_decided()) job.stopping = stop.reason();
    if (const auto at = kills_at(); at && holding()) job.kills = day(*at);
    if (any_generation()) {
        job.cause = top()->assignment.cause;
        job.world_size = top()->assignment.world_size;
        if (facts.interrupted()) job.ended_by = facts.interrupted()->what.sentence;
        if (facts.failure()) job.ended_by = facts.failure().outcome().sentence;
    }
    for (const auto& [id, node] : roster.nodes()) {
        if (node.beat.running == newest()) job.step = std::max(job.step, node.beat.step);
        if (node.connected()) {
            job.usage.add(node.beat.usage);
        } else {  // a sum never falls because a node has left
            job.usage.log_bytes += node.beat.usage.log_bytes;
            job.usage.store_operations += node.beat.usage.store_operations;
        }
    }
    job.snapshot = facts.snapshot();
    job.nodes = node_states();
    job.waiting_for = waiting_for(now, job.nodes);
    return job;
}

// Who waits for nodes says so by itself, again and again.
void MachineState::break_silence(Time now) {
    if (out.has_said()) quiet.spoke(now);
    if (phase != Phase::running) return;
    if (now >= quiet.due()) {
        note(Note::Level::info, status_line(now));
        quiet.spoke(now);
    }
    if (quiet.due() != kNever) wake_at(quiet.due());
}

std::string MachineState::status_line(Time now) {
    const JobStatus job = status(now);
    std::string line = to_text(newest()) + " has run for " + to_text(day(now) - job.since);
    if (const auto more = quiet.steps_since(job.step); job.step >= 0)
        line += ", step " + std::to_string(job.step) +
                (more ? " (" + std::to_string(*more) + " more than at the last such line)" : "");
    if (job.snapshot >= 0) line += ", newest snapshot " + std::to_string(job.snapshot);
    line += "; " + count_text(top()->restart.totals.restarts, "restart") + " so far";
    if (job.ends) line += "; " + to_text(*job.ends - day(now)) + " left";
    return line + (job.standstill.empty() ? "" : "; " + job.standstill);
}

// The nodes that are expected, those of the newest generation, and all that have called. Of several
// processes of one name the connected ones count, else the one that was heard last.
std::vector<NodeStatus> MachineState::node_states() const {
    std::map<std::string, std::vector<const NodeState*>> nodes;
    std::multimap<std::string, const Member*> members;
    for (const std::string& name : limits().order) nodes[name];
    if (any_generation() && !begins_allocation())
        for (const Member& member : top()->assignment.members) {
            nodes[member.node.name];
            members.emplace(member.node.name, &member);
        }
    for (const auto& [id, node] : roster.nodes()) {
        auto& known = nodes[id.name];
        if (known.empty() || (node.connected() && known.back()->connected()))
            known.push_back(&node);
        else if (node.connected() ||
                 (!known.back()->connected() && node.beat_came > known.back()->beat_came))
            known = {&node};
    }
    std::vector<NodeStatus> states;
    for (const auto& [name, known] : nodes) {
        const auto [first, last] = members.equal_range(name);
        const auto add = [&](const NodeState* node) {
            NodeStatus& status = states.emplace_back(state_of(name, node));
            for (auto at = first; at != last; ++at) {
                if (node && node->connected() && node->id != at->second->node) continue;
                status.first_rank = at->second->rank_offset;
                status.workers = at->second->offer.slots;
            }
        };
        for (const NodeState* node : known) add(node);
        if (known.empty()) add(nullptr);
    }
    return states;
}

NodeStatus MachineState::state_of(const std::string& name, const NodeState* node) const {
    NodeStatus status;
    status.name = name;
    const auto is = [&](State state, std::string why) {
        status.state = state;
        status.why = std::move(why);
        return status;
    };
    if (node) {
        status.workers = node->offer.slots;
        status.address = node->offer.address;
        status.port = node->offer.service_port;
        status.step = node->beat.step;
    }
    if (record.is_drained(name)) return is(State::drained, "an operator has taken it out");
    if (unusable.contains(name)) return is(State::unusable, "it " + unusable.why(name));
    if (!node || !node->connected()) {
        if (node && node->arrived) status.heard = day(node->beat_came);
        if (const auto out = out_of_service.of({name}); !out.empty())
            return is(State::out_of_service, "Slurm has taken it out of service: " + out.front());
        if (node && roster.gone(node->id)) return is(State::gone, "its ddprun has ended");
        if (!node || !node->arrived) return is(State::missing, "its ddprun has not called");
        return is(State::lost, "its connection is lost");
    }
    if (holding() && held()->lease.has(node->id))
        return node->beat.running == newest() ? is(State::running, "")
                                              : is(State::starting, "it starts its workers");
    if (!node->idle())
        return is(State::stopping,
                  "it is still stopping the workers of " + to_text(node->beat.running));
    if (holding()) return is(State::spare, "it has no place in " + to_text(newest()));
    return is(State::ready, stop.is_asked() || end.is_decided()
                                ? "it waits for the end of the job"
                                : "it waits for the next generation");
}

// "waiting for n17: its ddprun has not called; n18: its connection is lost; and 2 more".
std::string MachineState::waiting_for(Time now, const std::vector<NodeStatus>& nodes) const {
    if (phase == Phase::reading) return "the leader reads the ledger (" + active.ledger_name + ")";
    if (phase == Phase::creating)
        return "the ledger (" + active.ledger_name + ") is recording the next generation";
    if (phase == Phase::ending) return "the ledger records the end of the job";
    if (phase != Phase::gathering) return {};
    std::vector<const NodeStatus*> awaited;
    for (const NodeStatus& node : nodes)
        if (is_awaited(node.state)) awaited.push_back(&node);
    std::string sentence;
    for (std::size_t i = 0; i < std::min(awaited.size(), kNamed); ++i)
        sentence += (i ? "; " : "") + awaited[i]->name + ": " + awaited[i]->why;
    if (awaited.size() > kNamed)
        sentence += "; and " + std::to_string(awaited.size() - kNamed) + " more";
    if (!sentence.empty()) return "waiting for " + sentence;
    const int here = count_candidates(now);
    if (here < limits().min_nodes)
        return "waiting for nodes: " + std::to_string(here) + " of " +
               std::to_string(limits().min_nodes) + " are here";
    if (earlier_may_train())
        return "waiting until the workers of an earlier allocation must have stopped "
               "(--requeue-wait)";
    if (!gathering.waits_for().empty()) return gathering.waits_for();
    return any_generation() ? "waiting until " + to_text(newest()) + " is over on all nodes" : "";
}

}  // namespace ddprun::rendezvous
