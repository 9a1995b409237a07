// Who leads: the part of the rendezvous machine that becomes active, finds out what the newest
// generation is that it did not make, takes it over, and yields (design 4.3, rules 9-11).
#include <algorithm>

#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {
namespace {

constexpr double kNobodyCame = 0.3;    // of a lease: without any member the newest is over
constexpr double kInquiry = 0.2;       // of a lease: between two rounds of asking
constexpr double kLedgerSilent = 1.5;  // leases
constexpr double kRest = 3.0;          // leases without leading, after that
constexpr std::size_t kAskedAtOnce = 8;

std::string text(Generation generation) { return std::to_string(generation.value); }

}  // namespace

void Machine::State::while_dormant(Time now, const Event& event) {
    if (const auto* lead = std::get_if<Lead>(&event)) return activate(now, *lead);
    if (const auto* leader = std::get_if<LeaderHeard>(&event)) {
        heard = leader->leader == Peer{} ? std::nullopt : std::optional(leader->leader);
        heard_at = now;
    }
    const auto* came = std::get_if<Came>(&event);
    if (!came) return;
    if (const auto* gone = std::get_if<Gone>(&came->message)) {
        roster.set_gone(gone->node, now);
    } else if (std::get_if<Inquire>(&came->message)) {
        send(came->session, standing());
    } else if (std::get_if<Hello>(&came->message)) {
        send(came->session, dormant_answer(heard, heard_at, now, lease()));
        effects.push_back(Close{came->session});
    }
}

void Machine::State::activate(Time now, const Lead& lead) {
    State fresh(config, now);
    fresh.random = random;
    fresh.roster = std::move(roster);
    fresh.roster.forget();
    fresh.effects = std::move(effects);
    fresh.self = lead.self;
    fresh.ledger_name = lead.ledger;
    fresh.ledger_lasts = config.succession || lead.ledger_mark != 0;
    if (config.succession) fresh.ledger_mark = lead.ledger_mark;  // else nobody has to read it
    if (now - yielded_at < share(lease(), 2 * kRest)) fresh.unanswered_since = unanswered_since;
    fresh.identity = {config.self.name, Incarnation{fresh.random()}};
    // One in memory is known as long as its leader is the same.
    if (fresh.ledger_lasts)
        fresh.job = lead.ledger_mark;
    else
        fresh.job = fresh.identity.incarnation.value;
    fresh.phase = Phase::reading;
    fresh.active_since = now;
    fresh.next_inquiry = now + share(lease(), kInquiry);
    fresh.last_step = now;
    *this = std::move(fresh);
    ask_ledger(now, ReadLedger{kNoEntry});
}

Standing Machine::State::standing() const {
    return {.node = config.self,
            .leads = phase != Phase::dormant,
            .held = holding() ? held->assignment.generation : kNoGeneration,
            .entry = top ? top->number : kNoEntry};
}

// Members by rank; then (before the first generation: only) this leader and the others as they
// came, so many that there is somebody.
std::vector<Peer> Machine::State::order() const {
    if (!config.succession || single() || !ledger_shared) return {};
    std::span<const Member> members;
    if (top) members = top->assignment.members;
    std::vector<Peer> others{self};
    for (const NodeId& id : arrivals) {
        if (members.size() + others.size() >= kOrderFirst) break;
        const NodeState* node = roster.find(id);
        if (id != self.node && node && node->connected())
            others.push_back({id, node->offer.address, node->offer.service_port});
    }
    return order_of(members, others);
}

// Is the ledger shared (design 4.3)? The first node that does not read it decides that nobody leads
// after this leader. What stands in the ledger stays the truth: who has not heard yet that the
// order is void leads with the same entries.
void Machine::State::judge_ledger(const NodeState& node, std::uint64_t mark) {
    if (ledger_mark == 0 || mark == ledger_mark || node.id == self.node || !ledger_shared) return;
    ledger_shared = false;
    note(Note::Level::warn,
         "node " + node.id.name + " does not read the ledger of node " + config.self.name + ", " +
             ledger_name +
             ": it counts as one in memory, and the loss of the leader's node will end the job; "
             "--ledger=directory:PATH on a file system that all nodes share, or "
             "--ledger=etcd:HOST:PORT on all nodes, changes that");
    for (const auto& [id, other] : roster.nodes())
        if (other.connected() && id != self.node) send(*other.session, Parked{});
    keep_standby();
}

// Who stands in the order hears of a newcomer in it: it may be the only one left one day. So does
// the newcomer before the first generation, for its Welcome named those that had come by then.
void Machine::State::tell_order(const NodeId& newcomer) {
    const std::vector<Peer> all = order();
    const auto tell = [&](const NodeId& id) {
        const NodeState* node = roster.find(id);
        if (id != self.node && node && node->connected()) send(*node->session, Parked{{}, all});
    };
    if (!top && !all.empty()) tell(newcomer);
    const bool stands = std::any_of(all.begin(), all.end(),
                                    [&](const Peer& peer) { return peer.node == newcomer; });
    if (!stands) return;
    for (const Peer& peer : all)
        if (peer.node != newcomer) tell(peer.node);
}

std::optional<Peer> Machine::State::successor() const {
    for (const Peer& peer : order()) {
        const NodeState* node = roster.find(peer.node);
        if (peer.node != self.node && node && node->connected()) return peer;
    }
    return std::nullopt;
}

void Machine::State::keep_standby() {
    const std::optional<Peer> next = successor();
    if (next == standby) return;
    standby = next;
    effects.push_back(Standby{standby});
}

// The newest entry is another's: what it says of the generation is still to be found out.
void Machine::State::adopt(Time now, const LedgerEntry& entry) {
    const bool same = top && entry.assignment.generation == newest();
    own_safe_after = held && same ? held->lease.safe_after() : same ? own_safe_after : kLongAgo;
    held.reset();
    top = entry;
    if (!same) {
        forget_generation();
        restart_watch.began(newest(), kNever, top->restart.totals);
    }
    blame = top->blame;
    if (!stop) ending.reset();
    phase = Phase::gathering;
    since_min = kNever;
    gather_anew(now);
    history.restarts = top->assignment.restarts;
    history.progressed |= top->progressed;
    history.in_a_row = top->in_a_row;
    history.last_cause = top->last_cause;
    if (top->kind == LedgerEntry::Kind::end && !continues(*top, config.requeue)) {
        ending = top->ending;
        return close(now);
    }
    next_cause = "another leads";
    // Slurm ended that allocation before it started this one.
    if (top->requeue < config.requeue) {
        over = std::max(over, newest());
        next_cause = "the job was requeued";
        restart_watch.ended(now, now);
    }
    for (const auto& [node, told] : std::exchange(early, {})) on_facts(now, node, told.all(now));
    ack_all(now);
}

// Rule 9. Without a word of this leader nobody's lease grows, so that waiting ends by itself.
void Machine::State::settle(Time now) {
    const Generation g = newest();
    if (!top || over >= g || held) return;
    bool any = false, all = true;
    for (const Member& member : top->assignment.members) {
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
            return declare_over(
                now, {{}, "node " + member.node.name + " does not run generation " + text(g)});
    }
    if (all) {
        LedgerEntry entry;
        entry.kind = LedgerEntry::Kind::takeover;
        entry.assignment = top->assignment;
        return propose(now, std::move(entry));
    }
    if (any) return;
    const Time until = gathering_since + share(lease(), kNobodyCame);
    if (now < until) return wake_at(until);
    declare_over(now, {{}, "no member of generation " + text(g) + " came"});
}

// What ended it for the leader before, or for one of its nodes, says more.
void Machine::State::declare_over(Time now, const Interruption& why) {
    facts.interrupt(why, now);
    count_as_over(now, facts.interrupted()->what.sentence);
}

void Machine::State::count_as_over(Time now, const std::string& cause) {
    over = std::max(over, newest());
    next_cause = cause;
    restart_watch.ended(facts.failure() ? facts.failure().at() : now, now);
    note(Note::Level::warn, cause + "; generation " + text(newest()) + " ends");
    since_min = kNever;
    gather_anew(now);
    next_word = now + kFirstWord;
    ack_all(now);
}

// Rule 11: a leader that holds nothing asks who might lead with more right.
void Machine::State::inquire(Time now) {
    if (!config.succession || single()) return;
    if (now < next_inquiry) return wake_at(next_inquiry);
    next_inquiry = now + share(lease(), kInquiry);
    std::vector<Peer> before;
    for (const Peer& peer : order()) {
        if (peer.node == self.node) break;
        before.push_back(peer);
    }
    asked.clear();
    const auto ask = [this](const Peer& peer) {
        if (peer.port == 0 || peer.node == self.node || roster.gone(peer.node)) return;
        if (!asked.emplace(peer.node, peer).second) return;
        effects.push_back(Call{peer, share(lease(), kInquiry)});
    };
    if (top) ask(top->at);
    for (std::size_t i = 0; i < std::min(before.size(), kAskedAtOnce); ++i)
        ask(before[inquiries++ % before.size()]);
    wake_at(next_inquiry);
}

void Machine::State::on_called(Time now, const Called& called) {
    const auto found = asked.find(called.node);
    if (found == asked.end() || phase != Phase::gathering) return;
    const std::vector<Peer> all = order();
    const auto place = [&](const NodeId& node) {
        return std::find_if(all.begin(), all.end(),
                            [&](const Peer& peer) { return peer.node == node; });
    };
    const bool before = place(called.node) < place(self.node);
    const Peer to = found->second;
    if (called.standing.node == called.node &&
        yields_to(called.standing, top ? top->number : kNoEntry, before))
        yield(now, to, {}, to.node.name + " leads");
}

// Who cannot propose looks up anew each lease: its look-up may have been stale.
void Machine::State::look_up_again(Time now) {
    if (!config.succession || ledger_asked != kNever || phase != Phase::gathering) return;
    if (now >= read_at + lease()) {
        read_at = now;
        ask_ledger(now, ReadLedger{EntryNumber{top ? top->number.value + 1 : 0}});
    }
    wake_at(read_at + lease());
}

// Rule 11: whose ledger says nothing lets another try, unless it holds a generation or only has the
// end to record. Where no other's says more, that has an end too.
bool Machine::State::ledger_is_silent(Time now) {
    const Time since = std::min(ledger_asked, failing_since);
    if (since == kNever || holding() || ending) return false;
    unanswered_since = std::min(unanswered_since, since);
    const Time give_up = unanswered_since + config.limits.times.join_timeout;
    if (now > give_up) {
        ending = unavailable("ledger: " + (failing.empty() ? "no answer" : failing) + ", for " +
                             to_text(now - unanswered_since) + " (--join-timeout)");
        complete_ending(now);
        close(now);
        return true;
    }
    wake_at(give_up + Duration{1});
    if (!config.succession) return false;
    const Time until = since + share(lease(), kLedgerSilent);
    if (now < until) {
        wake_at(until);
        return false;
    }
    const std::optional<Peer> next = successor();
    if (!next) return false;
    yielded_at = now;
    yield(now, *next, share(lease(), kRest),
          "the ledger has not answered for " + to_text(now - since));
    return true;
}

void Machine::State::yield(Time now, const Peer& to, Duration rest, const std::string& why) {
    note(Note::Level::info, why + "; this node does not lead any more, " + to.node.name + " does");
    for (const auto& [id, node] : roster.nodes()) {
        if (!node.session) continue;
        send(*node.session, Elsewhere{to.address, to.port, id == self.node ? rest : Duration{}});
        effects.push_back(Close{*node.session});
    }
    if (standby) effects.push_back(Standby{std::nullopt});
    State fresh(config, now);
    fresh.random = random;
    fresh.roster = std::move(roster);
    fresh.roster.forget();
    fresh.effects = std::move(effects);
    fresh.heard = to;
    fresh.heard_at = now;
    fresh.unanswered_since = unanswered_since;
    fresh.yielded_at = yielded_at;
    *this = std::move(fresh);
}

// The same generation under this leader: nothing is extended until every member has echoed an Ack
// sent from now on, for only then none listens to the leader before.
void Machine::State::take_over(Time now) {
    for (auto& [id, node] : roster.nodes()) {
        node.acks.clear();
        node.confirmed.reset();
    }
    for (const Member& member : top->assignment.members)
        if (const NodeState* node = roster.find(member.node);
            !node || roster.gone(member.node) || node->beat.floor >= newest())
            return interrupt(
                now,
                {member.node.name, "node " + member.node.name + " left during the takeover", true},
                Note::Level::info);
    note(Note::Level::info, "generation " + text(newest()) + " goes on under this leader");
    ack_all(now);
    stop_all(now);
    all_complete(now);
}

}  // namespace ddprun::rendezvous
