// Leads a generation from its ledger entry to its end, by the rules of the lease (PROTOCOL.md,
// rules 3 to 6). Part of the rendezvous machine.
#include <algorithm>
#include <set>

#include "base/count_text.h"
#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/durations.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {
namespace {

// The log line counts the tasks of a host as one node; the number of workers stands beside it.
std::size_t hosts_of(const Assignment& assignment) {
    std::set<std::string> hosts;
    for (const Member& member : assignment.members) hosts.insert(host_of(member.node.name));
    return hosts.size();
}

std::string all_of(const Assignment& assignment) {
    return assignment.world_size == 1 ? "the worker"
                                      : "all " + std::to_string(assignment.world_size) + " workers";
}

}  // namespace

void MachineState::on_won(Time now) {
    const Assignment& assignment = top()->assignment;
    claim.hold(now, lease(), single());
    phase = Phase::running;
    watch.begin();
    late.generation_began();
    quiet.generation_began();
    snapshot.generation_is_held(held()->entry);
    if (held()->taken_over) return take_over(now);
    for (const std::string& line : record.began(*top())) note(Note::Level::warn, line);
    forget_generation();
    // The create may have taken long. A member that left meanwhile must not be sent into the
    // generation (PROTOCOL.md, rule 6).
    std::optional<std::string> left;
    for (const Member& member : assignment.members) {
        const NodeState* node = roster.find(member.node);
        if (!node || roster.gone(member.node) || (!single() && !node->confirmed))
            left = member.node.name;
        else if (node->confirmed)
            claim.confirm(member.node, *node->confirmed, now);
    }
    if (left)
        return interrupt(
            now, {*left, "node " + *left + " left while the generation was being recorded", true},
            Note::Level::info);
    if (held()->lease.expired(now))
        return interrupt(now, {{}, "recording the generation took longer than its lease"},
                         Note::Level::warn);
    note(Note::Level::info,
         to_text(assignment.generation) + ": " + count_text(hosts_of(assignment), "node") + ", " +
             count_text(static_cast<std::size_t>(assignment.world_size), "worker"));
    if (stop.is_asked()) return interrupt(now, {{}, "a stop was requested"}, Note::Level::info);
    for (const Member& member : assignment.members)
        if (leaving.contains(member.node))
            return interrupt(now, {{}, leaving.sentence(member.node)}, Note::Level::info,
                             RestartCause::planned);
    announce(now);
}

// Drops everything that was known about the previous generation.
void MachineState::forget_generation() {
    claim.began();
    facts = GenerationFacts(newest());
    news.begin(newest());
    for (auto& [id, node] : roster.nodes()) node.told.facts = 0, node.told.news = 0;
    stop.regrouped();
    snapshot.generation_began();
    hang.forget();
    standstill.forget();
    straggler.forget();
}

// Members get their places; all other nodes learn that they are spares.
void MachineState::announce(Time now) {
    const std::vector<Peer> order_now = order();
    for (auto& [id, node] : roster.nodes()) {
        if (!node.connected()) continue;
        if (held()->lease.has(id))
            send_assigned(node, order_now, now);
        else
            send(*node.session, Parked{parked(id), order_now});
    }
}

void MachineState::expire(Time now) {
    if (!holding()) return;
    // PROTOCOL.md, rule 9: without all echoes the takeover fails. By then every deadline of the
    // previous leader has passed.
    if (held()->taken_over && !held()->lease.granted() &&
        now > held()->since + share(lease(), kEchoes))
        return interrupt(now, {{}, "not all nodes answered the takeover in time"},
                         Note::Level::warn);
    if (!held()->lease.expired(now)) return;
    // The lease passed because of the member with the oldest confirmation; the log and blame name
    // it.
    const auto [node, at] = held()->lease.slowest();
    record.ended(at, now);
    // What the members have sent meanwhile was not read, so no silence is known (rule 28).
    if (const Duration still = now - due; still > share(lease(), kStall))
        return interrupt(now,
                         {{},
                          "the leader, node " + active.self.node.name + ", stood still for " +
                              to_text(still) + " (lease " + to_text(lease()) + ")"},
                         Note::Level::warn);
    interrupt(now,
              {node.name,
               "node " + node.name + " has confirmed nothing for " + to_text(now - at) +
                   " (lease " + to_text(lease()) + ")",
               true},
              Note::Level::warn);
}

void MachineState::interrupt(Time now, const Interruption& why, Note::Level level,
                             RestartCause kind) {
    if (!holding()) return;
    facts.interrupt(why, now);
    end_generation(now, why.sentence, level, kind);
}

void MachineState::end_generation(Time now, const std::string& cause, Note::Level level,
                                  RestartCause kind) {
    if (!holding()) return;
    hang.stop_examining();
    record.ended(facts.failure() ? facts.failure().at() : now, now);
    claim.end_held();
    snapshot.generation_ended();
    record.next_because(cause, kind);
    note(level, cause + "; " + to_text(held()->assignment.generation) + " ends");
    phase = Phase::gathering;
    gather_anew(now);
    stop.regrouped();
    gathering.generation_ended(now);
    note_losses();
    ack_all(now);
}

// What workers elsewhere cannot see. The Ack that ends the generation carries it.
void MachineState::note_losses() {
    if (const FirstFailure& failure = facts.failure(); failure && !failure.outcome().hung) {
        const WorkerOutcome& lost = failure.outcome();
        news.add(
            {NewsKind::worker_lost, failure.node(), lost.rank, 1, lost.exit_code, lost.signal});
    }
    if (!facts.interrupted()) return;
    for (const Member& member : top()->assignment.members)
        if (member.node.name == facts.interrupted()->what.node)
            news.add(
                {NewsKind::node_lost, member.node.name, member.rank_offset, member.offer.slots});
}

// A node says `complete` when all its workers have exited. When all nodes say so, the job has
// succeeded, or a planned stop is done.
void MachineState::all_complete(Time now) {
    if (!claim.all_completed()) return;
    if (const auto why = stop.regrouping())
        return end_generation(now, std::string(*why), Note::Level::info, RestartCause::planned);
    if (!stop.is_asked())
        end.decide(ended(Verdict::succeeded, 0,
                         all_of(held()->assignment) + " of " +
                             to_text(held()->assignment.generation) + " succeeded"));
    end_generation(now, stop.is_asked() ? "all workers have stopped" : "all workers succeeded",
                   Note::Level::debug);
}

// Facts from the previous leader or from a node may name an earlier interruption than `why`. The
// earliest becomes the cause.
void MachineState::declare_over(Time now, const Interruption& why) {
    facts.interrupt(why, now);
    count_as_over(now, facts.interrupted()->what.sentence);
}

void MachineState::count_as_over(Time now, const std::string& cause) {
    claim.count_as_over();
    record.next_because(cause);
    record.ended(facts.failure() ? facts.failure().at() : now, now);
    note(Note::Level::warn, cause + "; " + to_text(newest()) + " ends");
    gather_anew(now);
    gathering.generation_ended(now);
    note_losses();
    ack_all(now);
}

// A planned stop takes in nodes that joined while a smaller world runs. The lease goes on until all
// workers have stopped.
void MachineState::consider_late_joiners(Time now) {
    if (!holding() || stop.is_under_way()) return;
    const auto members = static_cast<int>(held()->assignment.members.size());
    if (members >= limits().max_nodes) return;
    LateJoinWatch::World world{.members = members,
                               .ending = claim.some_completed(),
                               .snapshot = facts.snapshot(),
                               .waiting = {}};
    if (!late.is_due(now, world.snapshot)) return wake_at(late.next_look());
    for (const auto& [id, node] : roster.nodes())
        if (node.connected() && node.idle() && !roster.gone(id) && !held()->lease.has(id) &&
            !record.is_drained(id.name) && !leaving.contains(id))
            world.waiting.push_back(id.name);
    const auto verdict = late.look(now, world, limits());
    if (!verdict) return;
    wake_at(late.next_look());
    if (verdict->regroup) regroup(now, StopCause::larger_world, verdict->sentence);
}

}  // namespace ddprun::rendezvous
