// The life of a generation, from the entry that makes it to its end, and what is looked at between
// two: the part of the rendezvous machine that holds the rules of the lease.
#include <algorithm>
#include <set>

#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {
namespace {

// Of a lease.
constexpr double kEchoes = 0.8;   // for the echoes after a takeover (rule 9)
constexpr double kSilent = 0.6;   // without a Beat: the connection is given up
constexpr double kScan = 0.1;     // between two looks at who is silent
constexpr double kStalled = 0.3;  // without a step: what is silent is ourselves

std::string count(std::size_t number, const char* what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// Tasks of a host are one node to a reader, who knows the workers from the other number.
std::size_t hosts_of(const Assignment& assignment) {
    std::set<std::string> hosts;
    for (const Member& member : assignment.members) hosts.insert(host_of(member.node.name));
    return hosts.size();
}

std::string all_of(const Assignment& assignment) {
    return assignment.world_size == 1 ? "the worker"
                                      : "all " + std::to_string(assignment.world_size) + " workers";
}

std::string text(Generation generation) { return std::to_string(generation.value); }

}  // namespace

void Machine::State::on_read(Time now, const LedgerRead& read) {
    if (phase == Phase::creating || phase == Phase::ending || phase == Phase::closed) return;
    ledger_asked = unanswered_since = kNever;
    read_at = now;
    if (failing_since == kNever) failing.clear();
    if (phase == Phase::reading) {
        phase = Phase::gathering;
        gather_anew(now);
    }
    if (!read.entries.empty() && (!top || read.entries.back().number > top->number))
        adopt(now, read.entries.back());
}

void Machine::State::on_unread(const LedgerUnread& unread) {
    if (failing != unread.sentence)
        note(Note::Level::warn, "cannot read the ledger: " + unread.sentence + "; trying again");
    failing = unread.sentence;
}

void Machine::State::on_created(Time now, const LedgerCreated& created) {
    if (phase != Phase::creating && phase != Phase::ending) return;
    // One that was asked for by an earlier activation says nothing of what this one has asked.
    if (created.outcome == LedgerCreated::Outcome::won && created.entry.leader != identity) return;
    ledger_asked = kNever;
    phase = Phase::gathering;
    if (created.outcome == LedgerCreated::Outcome::failed)
        return ledger_failed(now, created.sentence);
    failing_since = unanswered_since = kNever;
    if (created.entry.leader != identity) {
        note(Note::Level::warn, "ledger entry " + std::to_string(created.entry.number.value) +
                                    " was written by " + created.entry.leader.name +
                                    "; it is adopted");
        return adopt(now, created.entry);
    }
    // Ours, perhaps by an earlier try of which nobody knew.
    top = created.entry;
    if (top->kind != LedgerEntry::Kind::end) return on_won(now);
    if (top->ending.requeue && ending && ending->requeue) {  // nobody has taken it back meanwhile
        phase = Phase::ending;
        requeueing = true;
        effects.push_back(Requeue{});
        return;
    }
    on_requeued(now);
}

// Without an ending ledger_is_silent() sees to it that this does not last for ever.
void Machine::State::ledger_failed(Time now, const std::string& sentence) {
    if (failing_since == kNever || failing != sentence)
        note(Note::Level::error, "ledger: " + sentence + "; trying again");
    failing = sentence;
    failing_since = std::min(failing_since, now);
    if (ending && now - failing_since > 2 * lease()) {
        complete_ending(now);
        return close(now);
    }
    retry_at = now + share(lease(), 0.1);
}

void Machine::State::on_won(Time now) {
    const Assignment& assignment = top->assignment;
    const bool taken_over = top->kind == LedgerEntry::Kind::takeover;
    held = Held{top->number, assignment, Lease(assignment.members, lease(), single(), taken_over),
                false,       taken_over, now};
    held->places = places_of(assignment);
    phase = Phase::running;
    late_since = kNever;
    if (taken_over) return take_over(now);
    say_blamed();
    forget_generation();
    restart_watch.began(assignment.generation, made.first == top->random ? made.second : kNever,
                        top->restart.totals);
    std::optional<std::string> left;
    for (const Member& member : assignment.members) {
        const NodeState* node = roster.find(member.node);
        if (!node || roster.gone(member.node) || node->beat.floor >= assignment.generation ||
            (!single() && !node->confirmed))
            left = member.node.name;
        else if (node->confirmed)
            held->lease.confirm(member.node, *node->confirmed, now);
    }
    if (left)
        return interrupt(now,
                         {*left, "node " + *left + " left while the generation was recorded", true},
                         Note::Level::info);
    if (held->lease.expired(now))
        return interrupt(now, {{}, "recording it took longer than its lease"}, Note::Level::warn);
    note(Note::Level::info, "generation " + text(assignment.generation) + ": " +
                                count(hosts_of(assignment), "node") + ", " +
                                count(static_cast<std::size_t>(assignment.world_size), "worker"));
    if (stop) return interrupt(now, {{}, "a stop was asked for"}, Note::Level::info);
    announce(now);
}

// What was known of the one before.
void Machine::State::forget_generation() {
    complete.clear();
    facts = GenerationFacts(newest());
    judged_failure = false;
    for (auto& [id, node] : roster.nodes()) node.told.facts = 0;
    regrouping.reset();
    reports.clear();
    reported_at = kLongAgo;
    hang.reset();
    culprit.clear();
}

void Machine::State::announce(Time now) {
    const std::vector<Peer> order_now = order();
    const std::string parked =
        parked_sentence(static_cast<int>(held->assignment.members.size()), config.limits);
    for (auto& [id, node] : roster.nodes()) {
        if (!node.connected()) continue;
        if (held->lease.has(id))
            send_assigned(node, order_now, now);
        else
            send(*node.session, Parked{parked, order_now});
    }
}

void Machine::State::expire(Time now) {
    if (!holding()) return;
    if (held->taken_over && !held->lease.granted() && now > held->since + share(lease(), kEchoes))
        return interrupt(now, {{}, "not all nodes answered the takeover in time"},
                         Note::Level::warn);
    if (!held->lease.expired(now)) return;
    const auto [node, at] = held->lease.slowest();
    restart_watch.ended(at, now);
    interrupt(now,
              {node.name,
               "node " + node.name + " has confirmed nothing for " + to_text(now - at) +
                   " (lease " + to_text(lease()) + ")",
               true},
              Note::Level::warn);
}

void Machine::State::interrupt(Time now, const Interruption& why, Note::Level level) {
    if (!holding()) return;
    facts.interrupt(why, now);
    end_generation(now, why.sentence, level);
}

void Machine::State::end_generation(Time now, const std::string& cause, Note::Level level) {
    if (!holding()) return;
    hang.reset();
    restart_watch.ended(facts.failure() ? facts.failure().at() : now, now);
    held->over = true;
    over = std::max(over, held->assignment.generation);
    next_cause = cause;
    note(level, cause + "; generation " + text(held->assignment.generation) + " ends");
    phase = Phase::gathering;
    since_min = kNever;
    gather_anew(now);
    regrouping.reset();
    next_word = now + kFirstWord;
    ack_all(now);
}

void Machine::State::gather_anew(Time now) {
    gathering_since = now;
    all_back_at = enough_at = 0;
    ask_slurm_at = first_question(now);
}

// Every node whose workers have all exited says so; when all have, the job has succeeded (or a
// planned stop is done).
void Machine::State::all_complete(Time now) {
    if (complete.size() < held->assignment.members.size()) return;
    if (regrouping) return end_generation(now, std::string(*regrouping), Note::Level::info);
    if (!stop)
        ending = Ending{.verdict = Verdict::succeeded,
                        .code = 0,
                        .sentence = all_of(held->assignment) + " of generation " +
                                    text(held->assignment.generation) + " succeeded",
                        .first_failure = {},
                        .first_failure_node = {},
                        .consequences = 0};
    end_generation(now, stop ? "all workers have stopped" : "all workers succeeded",
                   Note::Level::debug);
}

void Machine::State::lead(Time now) {
    if (holding() && held->lease.granted() && held->lease.held_until() != kNever)
        wake_at(held->lease.held_until() + Duration{1});
    if (holding() && !held->lease.granted())
        wake_at(held->since + share(lease(), kEchoes) + Duration{1});
    scan(now);
    if (phase == Phase::running) watch_for_hang(now);
    if (phase == Phase::running) return consider_late_joiners(now);
    if (ledger_is_silent(now)) return;
    if (phase == Phase::ending && ledger_asked != kNever) {  // everyone waits for it with us
        if (now > ledger_asked + 2 * lease()) return close(now);
        return wake_at(ledger_asked + 2 * lease() + Duration{1});
    }
    if (phase != Phase::gathering) return;
    judge_silence(now);
    inquire(now);
    look_up_again(now);
    if (now < retry_at) return wake_at(retry_at);
    settle(now);
    if (phase == Phase::gathering) follow(now);
}

// Connections on which nobody is heard any more are given up. That proves nothing of the node, as
// no end of a connection and no refused call does; only its own word or the lease ends its claim.
void Machine::State::scan(Time now) {
    const bool stalled = now - last_step > share(lease(), kStalled);
    last_step = now;
    if (single() || now < next_scan) return;
    next_scan = now + share(lease(), kScan);
    keep_standby();
    if (stalled) return;
    std::vector<Session> silent;
    for (const auto& [id, node] : roster.nodes())
        if (node.connected() && id != self.node && now - node.beat_came > share(lease(), kSilent))
            silent.push_back(*node.session);
    for (const Session session : silent) {
        effects.push_back(Close{session});
        roster.lost(session);
    }
}

// What follows the newest generation, as soon as it may be followed.
void Machine::State::follow(Time now) {
    bool by_lease = false;
    if (!may_follow(now, by_lease)) {
        if (may_follow_at() > now) wake_at(may_follow_at());
        // Without evidence nothing may be written; then the wait must have an end all the same.
        const Time give_up = gathering_since + config.limits.times.join_timeout + lease();
        if (now < give_up) return wake_at(give_up);
        ending = unavailable("no member of generation " + text(newest()) + " came within " +
                             to_text(config.limits.times.join_timeout) +
                             ", so it cannot be known to have ended");
        complete_ending(now);
        return close(now);
    }
    const bool open = facts.failure() && !judged_failure && !ending;
    if (open && may_be_stop(now)) return;
    if (open) decide_failure();
    if (ending) return propose_end(now);
    gather(now, by_lease);
}

}  // namespace ddprun::rendezvous
