// Decides whether this node leads: it becomes active, finds out the state of a newest generation
// that it did not make, takes it over, and yields (PROTOCOL.md, rules 9 to 11). Part of the
// rendezvous machine.
#include <algorithm>

#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {
namespace {

// In a job of one node. Its ddprun was killed, and its keeper knows no service to call.
std::string of_earlier_run(const LedgerEntry& newest) {
    return "an earlier ddprun has begun " + to_text(newest.assignment.generation) + " on " +
           newest.at.node.name + ", and nothing proves that its workers have ended";
}

}  // namespace

void MachineState::while_dormant(Time now, const Event& event) {
    if (const auto* lead = std::get_if<Lead>(&event)) return activate(now, *lead);
    if (const auto* leader = std::get_if<LeaderHeard>(&event)) heard.heard(leader->leader, now);
    if (std::get_if<Operated>(&event))
        out.add(Answered{OperatorAnswer::again, "this node does not lead any more"});
    const auto* came = std::get_if<Came>(&event);
    if (!came) return;
    if (const auto* gone = std::get_if<Gone>(&came->message)) {
        roster.set_gone(gone->node, now);
    } else if (std::get_if<Inquire>(&came->message)) {
        send(came->session, standing());
    } else if (const auto* asked = std::get_if<AskOwners>(&came->message)) {
        out.add(LookUpOwners{came->session, *asked});
    } else if (std::get_if<Hello>(&came->message) || std::get_if<Operate>(&came->message)) {
        send(came->session, heard.answer(now, lease()));
        out.close(came->session);
    }
}

// Starts with a fresh state. Only proofs, the patience with the ledger and the random numbers
// survive, so that nothing of an earlier activation is mistaken for news.
void MachineState::activate(Time now, const Lead& lead) {
    MachineState fresh(config, now);
    fresh.roster = std::move(roster);
    fresh.roster.forget(now);
    fresh.out = std::move(out);
    fresh.ledger = ledger.in_next_activation(now, lease());
    fresh.inquiries.begin(now, lease());
    fresh.phase = Phase::reading;
    Activation& a = fresh.active;
    a.random = active.random;
    a.since = now;
    a.identity = {config.self.name, Incarnation{a.random()}};
    a.self = lead.self;
    a.ledger_name = lead.ledger;
    a.ledger_lasts = config.succession || lead.ledger_mark != 0;
    if (config.succession) a.ledger_mark = lead.ledger_mark;  // else nobody has to read it
    // A ledger in memory lives only as long as its leader, so the incarnation identifies the job.
    a.job = a.ledger_lasts ? lead.ledger_mark : a.identity.incarnation.value;
    *this = std::move(fresh);
    ask_ledger(now, ReadLedger{kNoEntry});
}

Standing MachineState::standing() const {
    return {.node = config.self,
            .leads = phase != Phase::dormant,
            .held = holding() ? held()->assignment.generation : kNoGeneration,
            .entry = claim.entry()};
}

std::vector<Peer> MachineState::order() const {
    if (!config.succession || single() || !successors.ledger_is_shared()) return {};
    std::span<const Member> members;
    // Members of an earlier allocation would refuse the call.
    if (!begins_allocation()) members = top()->assignment.members;
    return successors.order(members, active.self, roster);
}

// The order that nodes call names only some of many members. If all of these are lost at once, each
// of the others leads in the end. So leaders are compared by all members, as the ledger has them.
std::vector<Peer> MachineState::seniority() const {
    std::vector<Peer> all;
    const std::vector<Peer> named = order();
    if (named.empty()) return all;  // no other node may lead
    if (!begins_allocation())
        for (const Member& member : top()->assignment.members)
            if (member.offer.service_port != 0)
                all.push_back({member.node, member.offer.address, member.offer.service_port});
    const std::size_t members = all.size();
    for (const Peer& peer : named) {
        const auto end = all.begin() + static_cast<std::ptrdiff_t>(members);
        if (std::find_if(all.begin(), end,
                         [&](const Peer& each) { return each.node == peer.node; }) == end)
            all.push_back(peer);
    }
    return all;
}

// Once one node does not read the leader's ledger, no node may lead after this leader. The ledger
// stays the truth: a node that has not heard yet that the order is void leads with the same
// entries.
void MachineState::judge_ledger(const NodeState& node, std::uint64_t mark) {
    if (active.ledger_mark == 0 || mark == active.ledger_mark || node.id == active.self.node ||
        !successors.ledger_is_shared())
        return;
    successors.ledger_is_not_shared();
    note(Note::Level::warn,
         "node " + node.id.name + " cannot find the ledger of node " + config.self.name + " (" +
             active.ledger_name +
             "), so the loss of the leader's node will end the job; give all nodes "
             "--ledger=directory:PATH on a file system that they share, or "
             "--ledger=etcd:HOST:PORT");
    for (const auto& [id, other] : roster.nodes())
        if (other.connected() && id != active.self.node) send(*other.session, Parked{});
    keep_standby();
}

// Every node of the order hears of a newcomer in it, because it may one day be the only one left.
// Before the first generation the newcomer itself gets the order too, since its Welcome named only
// the nodes that had come by then.
void MachineState::tell_order(const NodeId& newcomer) {
    const std::vector<Peer> all = order();
    const auto tell = [&](const NodeId& id) {
        const NodeState* node = roster.find(id);
        if (id != active.self.node && node && node->connected())
            send(*node->session, Parked{{}, all});
    };
    if (begins_allocation() && !all.empty()) tell(newcomer);
    const bool stands = std::any_of(all.begin(), all.end(),
                                    [&](const Peer& peer) { return peer.node == newcomer; });
    if (!stands) return;
    for (const Peer& peer : all)
        if (peer.node != newcomer) tell(peer.node);
}

void MachineState::keep_standby() {
    if (successors.stands_by(Successors::next(order(), active.self.node, roster)))
        out.add(Standby{successors.standby()});
}

// Everything that a leader does on its own, after each event. It also sets the time of the next
// step.
void MachineState::lead(Time now) {
    if (holding() && held()->lease.granted() && held()->lease.held_until() != kNever)
        wake_at(held()->lease.held_until() + Duration{1});
    if (holding() && !held()->lease.granted())
        wake_at(held()->since + share(lease(), kEchoes) + Duration{1});
    scan(now);
    let_go(now);
    if (holding()) look_for_newer(now);
    look_for_snapshot(now);
    if (phase == Phase::running) watch_for_hang(now);
    if (phase == Phase::running) watch_for_standstill(now);
    if (phase == Phase::running) watch_for_straggler(now);
    if (phase == Phase::running) return consider_late_joiners(now);
    if (ledger_is_silent(now)) return;
    // All nodes wait for this answer. A stop may come before the ledger was read at all.
    const bool ends = phase == Phase::ending || (phase == Phase::reading && end.is_decided());
    if (ends && ledger.waits()) {
        const Time until = ledger.asked_since() + share(lease(), kEndUnrecorded);
        if (now <= until) return wake_at(until + Duration{1});
        end.complete(now, config.to_day, facts);
        return close(now);
    }
    if (phase != Phase::gathering) return;
    judge_silence(now);
    inquire(now);
    look_up_again(now);
    if (now < ledger.create_again_at()) return wake_at(ledger.create_again_at());
    settle(now);
    if (phase == Phase::gathering) follow(now);
}

// Another leader wrote the newest entry. The state of its generation is still to be found out.
void MachineState::adopt(Time now, const LedgerEntry& entry) {
    if (entry.requeue > config.requeue) return superseded(now, entry.requeue);
    allocation.superseded();
    const bool same = claim.adopt(entry);
    if (!same) forget_generation();
    record.adopt(entry, same);
    if (!stop.is_asked()) end.reopen();
    phase = Phase::gathering;
    gather_anew(now);
    if (top()->end() && !continues(*top(), config.requeue)) {
        end.decide(*top()->end());
        return close(now);
    }
    record.next_because(any_generation() ? "another node leads" : "start");
    // This allocation never goes on with a generation of an earlier one.
    if (begins_allocation() && any_generation()) {
        claim.count_as_over();
        record.next_because("the job was requeued");
        record.ended(now, now);
    }
    for (const auto& [node, told] : early.take()) on_facts(now, node, told.all(now));
    ack_all(now);
}

// PROTOCOL.md, rule 9: is the newest generation still running? This leader has granted nothing yet,
// so no lease grows and the wait ends by itself.
void MachineState::settle(Time now) {
    const Generation g = newest();
    if (!top() || claim.is_over() || held()) return;
    bool any = false, all = true;
    for (const Member& member : top()->assignment.members) {
        if (const auto gone = roster.gone_since(member.node)) {
            facts.interrupt({member.node.name, "node " + member.node.name + " is lost", true},
                            *gone);
            return declare_over(now, facts.interrupted()->what);
        }
        const NodeState* node = roster.find(member.node);
        if (!node || !node->connected()) {
            all = false;
            continue;
        }
        any = true;
        if (node->beat.running != g)
            return declare_over(now,
                                {{}, "node " + member.node.name + " does not run " + to_text(g)});
    }
    if (all) {
        LedgerEntry entry;
        entry.act = TakesOver{};
        entry.assignment = top()->assignment;
        return propose(now, std::move(entry));
    }
    if (any) return;
    const Time until = gathering.since() + share(lease(), kNobodyCame);
    if (now < until) return wake_at(until);
    declare_over(now, {{}, "no member of " + to_text(g) + " has connected"});
    if (!single()) return;
    gathering.wait_for(of_earlier_run(*top()));
    note(Note::Level::warn,
         gathering.waits_for() + "; this job waits for " +
             to_text(limits().times.join_timeout + lease()) +
             " (--join-timeout) and then ends. If none of them runs any more, end it, remove its "
             "ledger (ddpctl forget --force) or choose another --rdzv-id, and start it again");
}

// PROTOCOL.md, rule 11: a leader that holds nothing asks other services whether they lead with more
// right.
void MachineState::inquire(Time now) {
    if (single() || (!config.succession && rivals().empty())) return;
    if (now < inquiries.next_round()) return wake_at(inquiries.next_round());
    std::vector<Peer> before = seniority();
    const auto self = std::ranges::find(before, active.self.node, &Peer::node);
    before.erase(self, before.end());
    for (const Peer& rival : rivals()) before.push_back(rival);
    const auto may_call = [this](const Peer& peer) {
        return peer.port != 0 && peer.node != active.self.node && !roster.gone(peer.node);
    };
    std::optional<Peer> writer;
    if (top() && top()->requeue == config.requeue) writer = top()->at;
    for (const Peer& peer : inquiries.round(now, lease(), writer, before, may_call))
        out.add(Call{peer, share(lease(), kInquiry)});
    wake_at(inquiries.next_round());
}

void MachineState::on_called(Time now, const Called& called) {
    const std::optional<Peer> to = inquiries.asked(called.node);
    if (!to || phase != Phase::gathering) return;
    if (called.node.incarnation == Incarnation{}) return on_rival(now, called, *to);
    const std::vector<Peer> all = seniority();
    const auto place = [&](const NodeId& node) {
        return std::find_if(all.begin(), all.end(),
                            [&](const Peer& peer) { return peer.node == node; });
    };
    // Before the first generation, who has recorded that it leads stands before all others.
    const bool recorded = top() && top()->allocation() && top()->requeue == config.requeue;
    const bool before = allocation.is_recorded() ? false
                        : recorded && top()->at.node == called.node
                            ? true
                            : place(called.node) < place(active.self.node);
    if (called.standing.node == called.node && yields_to(called.standing, claim.entry(), before))
        yield(now, *to, {}, "another leader has answered");
}

// They count before the first generation only: after it, this leader's nodes know each other.
std::vector<Peer> MachineState::rivals() const {
    return any_generation() ? std::vector<Peer>() : config.rivals;
}

// Until when the first generation waits for the answers of rivals. Their silence does not block it.
Time MachineState::rivals_answer_by(std::size_t here) const {
    constexpr auto kAnswers = std::chrono::seconds{5};
    if (rivals().empty() || here >= limits().order.size()) return kLongAgo;
    return gathering.since() + kAnswers;
}

// The first one in Slurm's order goes on. One that has a generation does in any case.
void MachineState::on_rival(Time now, const Called& called, const Peer& at) {
    const NodeId& other = called.standing.node;
    if (rivals().empty() || other == config.self) return;
    const auto place = [&](const std::string& name) {
        return std::ranges::find(limits().order, name) - limits().order.begin();
    };
    if (yields_to(called.standing, claim.entry(), place(other.name) < place(config.self.name)))
        yield(now, {other, at.address, at.port}, {},
              "the endpoint is an address of node " + other.name + ", too, which leads");
}

// Sends all nodes to the other leader and becomes dormant. Only this node's own agent gets `rest`:
// it must not lead again too soon.
void MachineState::yield(Time now, const Peer& to, Duration rest, const std::string& why) {
    note(Note::Level::info, why + "; this node stops leading; " + to.node.name + " leads now");
    for (const auto& [id, node] : roster.nodes()) {
        if (!node.session) continue;
        send(*node.session,
             Elsewhere{to.address, to.port, id == active.self.node ? rest : Duration{}});
        out.close(*node.session);
    }
    if (successors.standby()) out.add(Standby{std::nullopt});
    MachineState fresh(config, now);
    fresh.active.random = active.random;
    fresh.roster = std::move(roster);
    fresh.roster.forget(now);
    fresh.out = std::move(out);
    // The wake-up times of the old activation would only cause empty steps.
    fresh.out.sleep();
    fresh.heard.heard(to, now);
    fresh.ledger = ledger.after_yield();
    *this = std::move(fresh);
}

// The same generation under this leader. Nothing is extended until every member has echoed an Ack
// that was sent from now on. Only such an echo shows that the member no longer follows the previous
// leader.
void MachineState::take_over(Time now) {
    for (auto& [id, node] : roster.nodes()) {
        node.acks.clear();
        node.confirmed.reset();
    }
    for (const Member& member : top()->assignment.members)
        if (const NodeState* node = roster.find(member.node); !node || roster.gone(member.node))
            return interrupt(
                now,
                {member.node.name, "node " + member.node.name + " left during the takeover", true},
                Note::Level::info);
    note(Note::Level::info, to_text(newest()) + " continues under this leader");
    ack_all(now);
    stop_all(now);
    all_complete(now);
}

}  // namespace ddprun::rendezvous
