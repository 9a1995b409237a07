// Connections and the messages of nodes: who joins, what Beats and Reports say, what a node gets in
// answer (machine_state.h).
#include <algorithm>
#include <utility>

#include "base/overload.h"
#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/durations.h"
#include "rendezvous/rules/lease_member.h"

namespace ddprun::rendezvous {

void MachineState::came(Time now, const Came& event) {
    const Session session = event.session;
    std::visit(Overload{[&](const Hello& m) { on_hello(now, session, m); },
                        [&](const Join& m) { on_join(now, session, m); },
                        [&](const Beat& m) { on_beat(now, session, m); },
                        [&](const Report& m) { on_report(now, session, m); },
                        [&](const StopAsked& m) { on_stop_asked(now, session, m); },
                        [&](const Leave& m) {
                            if (const NodeState* node = roster.of(session))
                                on_gone(
                                    now, NodeId(node->id),
                                    leaving.contains(node->id) ? "has left" : "left: " + m.reason,
                                    false);
                        },
                        [&](const Gone& m) { on_said_gone(now, session, m.node); },
                        [&](const Unusable& m) { on_unusable(now, session, m.reason); },
                        [&](const Inquire&) { send(session, standing()); },
                        [&](const AskOwners& m) {
                            out.add(LookUpOwners{session, m});
                        },
                        // The service takes an operator before the machine hears of it.
                        [&](const Operate& m) {
                            refuse(session, m.as.node.name + " has no secret of this job");
                        }},
               event.message);
}

// A session with a Hello speaks for its own process only (the keeper holds a duplicate of the
// connection). A session without a Hello is the standby connection of a leader.
void MachineState::on_said_gone(Time now, Session session, const NodeId& id) {
    const NodeState* node = roster.of(session);
    if (!node || node->id == id) on_gone(now, id, "is gone: its ddprun has ended");
}

// A node of another job calls again and again while it looks for its own rendezvous.
void MachineState::refuse(Session session, std::string sentence, bool for_good) {
    constexpr std::size_t kSaid = 100;
    if (refusals.size() < kSaid && refusals.insert(sentence).second) {
        const char* rest =
            refusals.size() == kSaid ? "; further ones are refused without a line" : "";
        note(Note::Level::warn, "refused a node: " + sentence + rest);
    }
    send(session, Refused{std::move(sentence), for_good});
    out.close(session);
}

// Its ddprun is that of this allocation, so it does not come with our version. Where the job needs
// the node, nobody waits. A second ddprun of a node that is here says nothing about the first.
void MachineState::refuse_version(Time now, Session session, const Hello& hello) {
    const std::string why = "runs ddprun " + hello.version + "; the rendezvous on " +
                            config.self.name + " runs ddprun " + config.version +
                            "; use the same version on all nodes";
    // One of an earlier restart of the job says nothing about this one.
    const bool ours = hello.requeue == config.requeue;
    const bool is_here = std::ranges::any_of(roster.nodes(), [&](const auto& each) {
        return each.second.connected() && each.first.name == hello.node.name;
    });
    if (ours && !is_here && std::ranges::count(limits().order, hello.node.name) > 0)
        other_version.add(hello.node.name, why, now);
    refuse(session, "node " + hello.node.name + " " + why, ours);
}

void MachineState::on_hello(Time now, Session session, const Hello& hello) {
    if (hello.run_id != config.run_id)
        return refuse(session, "node " + hello.node.name + " belongs to run \"" + hello.run_id +
                                   "\"; this is run \"" + config.run_id +
                                   "\" (--rdzv-id, --rdzv-endpoint)");
    if (single() && hello.node != config.self)
        return refuse(session, "node " + hello.node.name + " cannot join: this job has one node");
    if (hello.version != config.version) return refuse_version(now, session, hello);
    if (hello.requeue != config.requeue)
        return refuse(session, "node " + hello.node.name + " belongs to restart " +
                                   std::to_string(hello.requeue) + " of the job; this is restart " +
                                   std::to_string(config.requeue));
    if (hello.limits.pmi != limits().pmi)
        return refuse(session, "node " + hello.node.name + " was started " +
                                   (limits().pmi ? "without" : "with") +
                                   " --pmi; this job was started " +
                                   (limits().pmi ? "with" : "without") +
                                   " it; give all nodes the same command");
    if (roster.gone(hello.node))
        return refuse(session, "node " + hello.node.name +
                                   " was already reported gone; start a new ddprun there");
    if (const auto replaced = roster.hello(session, hello.node)) out.close(*replaced);
    const int nodes = single() ? 1 : std::max(limits().max_nodes, 2);  // 1 means: no beats
    send(session, Welcome{active.identity, limits().times, order(), nodes, active.self,
                          active.ledger_name, active.ledger_mark, active.job});
    if (phase == Phase::closed) tell_end(*roster.of(session));
}

// A node of an earlier job with this run id would otherwise take part in this job and end with its
// result.
std::string MachineState::of_another_job(const NodeState& node) const {
    return "node " + node.id.name + " belongs to another job with run id \"" + config.run_id +
           "\", not to this one: that job has ended, or " +
           (active.ledger_lasts
                ? "its ledger was removed"
                : "this rendezvous was restarted with the ledger in memory; "
                  "--ledger=directory:PATH or --ledger=etcd:HOST:PORT keeps the ledger");
}

void MachineState::on_join(Time now, Session session, const Join& join) {
    NodeState* node = roster.of(session);
    if (!node) return refuse(session, "a Join came before its Hello");
    if (active.job != 0 && join.job != 0 && join.job != active.job)
        return refuse(session, of_another_job(*node));
    node->joined = true;
    node->came = now;
    other_version.forget(node->id.name);
    late.look_anew();
    gathering.somebody_came();
    node->offer = join.offer;
    judge_ledger(*node, join.ledger_mark);
    if (!std::exchange(node->arrived, true)) {
        successors.arrived(node->id);
        tell_order(node->id);
        note(Note::Level::debug, "node " + node->id.name + " has joined; nodes so far: " +
                                     std::to_string(successors.arrived_count()));
    }
    if (holding() && !held()->lease.has(node->id)) {
        send(session, Parked{parked(node->id), order()});
        news.add({NewsKind::node_joined, node->id.name});
    }
    on_facts(now, node->id, join.facts);
    on_beat(now, session, join.beat);
    // The node may have been disconnected when the others got the Stop.
    if (const auto told = stop_now(now); told && held()->lease.has(node->id)) send(session, *told);
}

void MachineState::on_beat(Time now, Session session, const Beat& beat) {
    NodeState* node = roster.of(session);
    if (!node || !node->joined) return;
    const bool was_back = is_back(*node), was_candidate = candidate(now, *node);
    const Generation floor = std::max(beat.floor, node->beat.floor);  // a vow is never taken back
    const Beat before = std::exchange(node->beat, beat);
    node->beat.floor = floor;
    node->beat_came = now;
    auto& acks = node->acks;
    // Echoes only grow, so Acks before the echoed one are not needed any more.
    acks.erase(acks.begin(), std::find_if(acks.begin(), acks.end(), [&](const auto& ack) {
                   return ack.number >= beat.echo;
               }));
    std::optional<Time> confirmed;
    if (!acks.empty() && acks.front().number == beat.echo) {
        confirmed = acks.front().at;
        node->confirmed = std::max(node->confirmed.value_or(kLongAgo), *confirmed);
    }
    if ((!was_back && is_back(*node)) || (!was_candidate && candidate(now, *node)))
        gathering.somebody_came();
    if (phase == Phase::closed) return;
    if (const NodeState* member = has_its_rank(*node))
        return refuse(session, one_rank(*node, *member));
    const EntryNumber known = claim.entry();
    if (beat.seen > known && phase == Phase::gathering && !ledger.waits())
        ask_ledger(now, ReadLedger{EntryNumber{known.value + 1}});  // ours is out of date
    record.heard(node->id, beat.marks, now);
    if (beat.running != kNoGeneration && beat.running == newest()) {
        hang.heard(now, node->id, node->beat);
        facts.reached(beat.reach);
        facts.saved(beat.snapshot, now);
        facts.saving(beat.saving);
        if (beat.complete && is_member(node->id)) claim.completed(node->id);
    }
    if (holding() && held()->lease.has(node->id)) beat_in_held(now, *node, confirmed);
    if (holding() && beat.complete) all_complete(now);
    if (beat.running > kNoGeneration && beat.running <= claim.over() && !beat.complete)
        note(Note::Level::debug, "node " + node->id.name + " still runs generation " +
                                     std::to_string(beat.running.value) + " (generations up to " +
                                     std::to_string(claim.over().value) +
                                     " have ended); telling it to stop its workers");
    if (owes_ack(now, *node, before)) send_ack(now, *node, true);
}

void MachineState::beat_in_held(Time now, NodeState& node, std::optional<Time> confirmed) {
    const Generation g = held()->assignment.generation;
    if (node.beat.floor >= g) {
        // It may have said why.
        if (const auto& said = facts.interrupted())
            return interrupt(now, Interruption(said->what), Note::Level::warn);
        return interrupt(
            now,
            {node.id.name,
             "node " + node.id.name + " does not run generation " + std::to_string(g.value), true},
            Note::Level::warn);
    }
    if (node.idle() && !held()->taken_over && node.assigned != g) send_assigned(node, order(), now);
    if (confirmed && may_grant(now) && claim.confirm(node.id, *confirmed, now)) ack_all(now);
}

void MachineState::on_report(Time now, Session session, const Report& report) {
    const NodeState* node = roster.of(session);
    if (!node) return;
    if (std::all_of(report.outcomes.begin(), report.outcomes.end(),
                    [](const WorkerOutcome& outcome) { return outcome.hung; })) {
        if (report.generation != newest()) return;
        hang.answered(node->id, report);
        standstill.answered(node->id, report);
        for (const WorkerOutcome& outcome : report.outcomes)
            if (outcome.signal != 0) facts.wrote_at_its_end(name_of(outcome.rank), outcome);
        return;
    }
    Facts said{.generation = report.generation};
    for (const WorkerOutcome& outcome : report.outcomes)
        if (outcome.failed()) said.failures.push_back({node->id.name, outcome});
    on_facts(now, node->id, said);
}

// A worker that fails during a planned stop may have failed because of it.
void MachineState::end_by_failure(Time now) {
    if (claim.is_over() || !facts.failure() || stop.is_under_way()) return;
    const std::string& cause = facts.failure().outcome().sentence;
    if (holding())
        end_generation(now, cause, Note::Level::warn);
    else
        count_as_over(now, cause);
}

// A leader that has not read the newest entry yet keeps the facts until then.
void MachineState::on_facts(Time now, const NodeId& node, const Facts& said) {
    if (said.generation > newest()) return early.hear(node, said, now);
    if (said.generation != newest() || phase == Phase::ending || phase == Phase::closed) return;
    facts.hear(said, now);
    hear_limits();
    if (const auto told = facts.stop(now); told && !stop.is_under_way()) resume_stop(now, *told);
    end_by_failure(now);
}

void MachineState::on_gone(Time now, const NodeId& id, const std::string& why, bool to_blame) {
    if (!roster.set_gone(id, now)) return;
    leaving.left(id);
    gathering.member_is_gone();
    if (holding() && held()->lease.has(id))
        interrupt(now, {id.name, "node " + id.name + " " + why, to_blame}, Note::Level::warn);
    else if (phase != Phase::closed)
        note(Note::Level::info, "node " + id.name + " " + why);
}

// An unusable node never joins again, so for the generation it counts as gone. In a job of one node
// this is the end.
void MachineState::on_unusable(Time now, Session session, const std::string& reason) {
    const NodeState* node = roster.of(session);
    if (!node || roster.gone(node->id)) return;
    const std::string why = "is unusable: " + reason;
    unusable.add(node->id.name, why, now);
    const std::string sentence = "node " + node->id.name + " " + why;
    if (is_member(node->id)) facts.interrupt({node->id.name, sentence, true}, now);
    on_gone(now, NodeId(node->id), why);
    if (single() && !end.is_decided() && !facts.failure()) end.decide(unavailable(sentence));
}

void MachineState::send_assigned(NodeState& node, const std::vector<Peer>& order, Time now) {
    const Time until = held()->lease.held_until();
    if (!node.session || !held()->lease.granted() || now >= until) return;
    node.assigned = held()->assignment.generation;
    send(*node.session,
         Assigned{held()->entry, held()->places.at(node.id), node.beat.number,
                  until == kNever ? Duration::max() : until - node.beat_came, order});
}

Told MachineState::to_tell(const NodeState& node) const {
    Told told{.entry = claim.entry(),
              .held = kNoGeneration,
              .over = claim.over(),
              .facts = facts.revision(),
              .news = news.count()};
    if (!holding()) return told;
    told.held = held()->assignment.generation;
    if (held()->lease.has(node.id) && held()->lease.granted())
        told.until = held()->lease.held_until();
    return told;
}

// An answer is the most expensive part of a Beat, so without news only each second Beat gets one
// (PROTOCOL.md, rule 2). After a stall the leader finds several Beats of one node; the last ones
// still get an Ack if the lease has grown.
bool MachineState::owes_ack(Time now, const NodeState& node, const Beat& before) const {
    const Duration each = share(lease(), kAckEach);
    if (node.acks.empty() || now - node.acks.back().at >= each) return true;
    const Beat& beat = node.beat;
    if (beat.seen != before.seen || beat.floor != before.floor || beat.running != before.running)
        return true;
    // If this leader is lost now, the other nodes must know until when it lived.
    if (facts.failure() && !record.is_judged()) return true;
    const Told next = to_tell(node), &last = node.told;
    if (next.entry != last.entry || next.held != last.held || next.over != last.over ||
        next.facts != last.facts)
        return true;
    return next.until > last.until && (last.until == kLongAgo || next.until - last.until >= each);
}

// Facts come mostly with the answer to a Beat. The Ack to all nodes at the end of a generation must
// be small and quick.
void MachineState::send_ack(Time now, NodeState& node, bool with_facts) {
    if (!node.connected()) return;
    node.acks.push_back({roster.next_ack(), now});
    if (node.acks.size() > kAcksRemembered) node.acks.erase(node.acks.begin());
    const std::int64_t known = node.told.facts;
    const std::size_t news_told = node.told.news;
    node.told = to_tell(node);
    if (!with_facts) node.told.facts = known;
    Ack ack{.number = node.acks.back().number,
            .beat = node.beat.number,
            .entry = node.told.entry,
            .held = node.told.held,
            .remaining = {},
            .over = node.told.over};
    if (node.told.facts != known) ack.facts = facts.brief(now);
    if (holding() && held()->lease.has(node.id)) ack.snapshot = snapshot.open();
    if (is_member(node.id)) ack.news = news.after(news_told);
    if (node.told.until != kLongAgo)
        ack.remaining =
            node.told.until == kNever ? Duration::max() : node.told.until - node.beat_came;
    send(*node.session, ack);
}

// With facts when the generation hangs: its workers are ended in another way then.
void MachineState::ack_all(Time now) {
    const bool hung = facts.failure() && facts.failure().outcome().hung;
    for (auto& [id, node] : roster.nodes()) send_ack(now, node, hung);
}

// Closes connections that have been silent for too long. A closed connection or a refused call
// proves nothing about the node; only its own word or the lease ends its claim.
void MachineState::scan(Time now) {
    const Roster::Look look = roster.looks_for_silence(now, lease());
    if (single() || look == Roster::Look::not_due) return;
    keep_standby();
    if (look == Roster::Look::stalled) return;
    for (const Session session : roster.silent(now, lease(), active.self.node)) {
        out.close(session);
        roster.lost(session);
    }
}

}  // namespace ddprun::rendezvous
