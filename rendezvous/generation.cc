// When a generation ends, and who may propose what follows it: the part of the rendezvous machine
// that holds the rules of lease and evidence.
#include <algorithm>

#include "rendezvous/machine_state.h"

namespace ddprun::rendezvous {
namespace {

constexpr double kConfirmedWithin =
    0.45;  // of a lease: how fresh a member's newest echo must be (rule 8)
constexpr double kMembersAwaited =
    0.6;  // of a lease: how long absent members are waited for (rule 8)
constexpr double kSilentOthers = 1.0;  // of a lease: rule 7 (c)

std::string count(std::size_t number, const char* what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::string text(Generation generation) { return std::to_string(generation.value); }

}  // namespace

void Machine::State::on_read(Time now, const LedgerRead& read) {
    if (!read.entries.empty() && (!top || read.entries.back().number > top->number))
        top = read.entries.back();
    if (phase != Phase::reading) return;
    phase = Phase::gathering;
    gathering_since = now;
    if (!top) return;
    history.restarts = top->assignment.restarts;
    history.progressed = top->progressed;
    if (top->kind == LedgerEntry::Kind::end) {
        ending = top->ending;
        return close(now);
    }
    // What an earlier leader held cannot be known to go on; saying so is always safe.
    over = std::max(over, newest());
    next_cause = "the rendezvous started anew";
    ack_all(now);
}

void Machine::State::on_created(Time now, const LedgerCreated& created) {
    const bool end = phase == Phase::ending;
    if (phase != Phase::creating && !end) return;
    phase = Phase::gathering;
    if (created.outcome == LedgerCreated::Outcome::failed) {
        return ledger_failed(now, created.sentence);
    }
    failing_since = kNever;
    top = created.entry;
    held.reset();
    if (created.outcome == LedgerCreated::Outcome::lost) {
        note(Note::Level::warn, "ledger entry " + std::to_string(top->number.value) +
                                    " was written by " + top->leader.name + "; it is adopted");
        over = std::max(over, newest());
        if (top->kind == LedgerEntry::Kind::end) ending = top->ending;
    }
    if (top->kind == LedgerEntry::Kind::end) return close(now);
    if (created.outcome == LedgerCreated::Outcome::won) return on_won(now);
    gathering_since = now;
    ack_all(now);
}

void Machine::State::ledger_failed(Time now, const std::string& sentence) {
    const Duration patience = ending ? 2 * lease() : config.limits.times.join_timeout;
    failing_since = std::min(failing_since, now);
    if (now - failing_since > patience) {
        if (!ending)
            ending = Ending{.verdict = Verdict::unavailable,
                            .code = 69,
                            .sentence = "ledger: " + sentence,
                            .first_failure = {},
                            .first_failure_node = {},
                            .consequences = 0};
        return close(now);
    }
    retry_at = now + share(lease(), 0.1);
    note(Note::Level::error, "ledger: " + sentence + "; trying again");
}

void Machine::State::on_won(Time now) {
    const Assignment& assignment = top->assignment;
    held = Held{top->number, assignment, Lease(assignment.members, lease(), single()),
                false,       false,      {}};
    phase = Phase::running;
    failure.reset();
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
        return end_generation(now, "node " + *left + " left while the generation was recorded",
                              Note::Level::info);
    if (held->lease.expired(now))
        return end_generation(now, "recording it took longer than its lease", Note::Level::warn);
    note(Note::Level::info, "generation " + text(assignment.generation) + ": " +
                                count(assignment.members.size(), "node") + ", " +
                                count(static_cast<std::size_t>(assignment.world_size), "worker"));
    if (stop) return end_generation(now, "a stop was asked for", Note::Level::info);
    for (auto& [id, node] : roster.nodes()) {
        if (!node.connected()) continue;
        if (held->lease.has(id))
            send_assigned(node, now);
        else
            send(*node.session, Parked{"spare: generation " + text(assignment.generation) +
                                       " runs without this node"});
    }
}

void Machine::State::expire(Time now) {
    if (!holding() || !held->lease.expired(now)) return;
    const auto [node, at] = held->lease.slowest();
    end_generation(now,
                   "node " + node.name + " has confirmed nothing for " + to_text(now - at) +
                       " (lease " + to_text(lease()) + ")",
                   Note::Level::warn);
}

void Machine::State::end_generation(Time now, const std::string& cause, Note::Level level) {
    if (!holding()) return;
    held->over = true;
    over = std::max(over, held->assignment.generation);
    history.progressed |= held->progressed;
    next_cause = cause;
    note(level, cause + "; generation " + text(held->assignment.generation) + " ends");
    phase = Phase::gathering;
    gathering_since = now;
    since_min = kNever;
    next_word = now + kFirstWord;
    ack_all(now);
}

// Every node whose workers have all exited says so; when all have, the job has succeeded (or a
// planned stop is done).
void Machine::State::all_complete(Time now) {
    if (held->complete.size() < held->assignment.members.size()) return;
    if (!stop)
        ending = Ending{.verdict = Verdict::succeeded,
                        .code = 0,
                        .sentence = "all " + std::to_string(held->assignment.world_size) +
                                    " workers of generation " + text(held->assignment.generation) +
                                    " succeeded",
                        .first_failure = {},
                        .first_failure_node = {},
                        .consequences = 0};
    end_generation(now, stop ? "all workers have stopped" : "all workers succeeded",
                   Note::Level::debug);
}

// Rule 7: who may create the entry that follows the newest generation. `by_lease` says that only
// case (b) gives the right.
bool Machine::State::may_follow(Time now, bool& by_lease) const {
    by_lease = false;
    if (!top) return true;
    if (top->requeue < config.requeue)
        return true;  // Slurm ended that allocation before it started this one
    const Generation g = newest();
    if (over < g) return false;
    bool all_back = true;
    for (const Member& member : top->assignment.members) {
        const NodeState* node = roster.find(member.node);
        all_back &= roster.gone(member.node) || (node && node->beat.floor >= g && node->idle());
    }
    if (all_back) return true;
    const bool mine = held && held->assignment.generation == g;
    if (mine && (!held->over || now <= held->lease.safe_after())) return false;
    if (mine && held->lease.granted()) return by_lease = true;
    return std::any_of(top->assignment.members.begin(), top->assignment.members.end(),
                       [&](const Member& member) {
                           const NodeState* node = roster.find(member.node);
                           return node && node->idle() && node->beat.floor >= g &&
                                  node->beat.silent >= share(lease(), kSilentOthers);
                       });
}

Time Machine::State::may_follow_at() const {
    return held && held->over && held->lease.granted() && held->lease.safe_after() != kNever
               ? held->lease.safe_after() + Duration{1}
               : kNever;
}

bool Machine::State::candidate(Time now, const NodeState& node) const {
    if (!node.connected() || roster.gone(node.id) || !node.idle() || node.beat.floor < newest())
        return false;
    return single() || (node.confirmed && now - *node.confirmed < share(lease(), kConfirmedWithin));
}

std::vector<Candidate> Machine::State::candidates(Time now) const {
    std::vector<Candidate> here;
    for (const auto& [id, node] : roster.nodes())
        if (candidate(now, node)) here.push_back({id, node.offer});
    return here;
}

std::vector<std::string> Machine::State::missing(const std::vector<Candidate>& here) const {
    std::vector<std::string> names;
    const auto absent = [&](const std::string& name) {
        return std::none_of(here.begin(), here.end(),
                            [&](const Candidate& c) { return c.node.name == name; });
    };
    if (!config.limits.order.empty()) {
        for (const std::string& name : config.limits.order)
            if (absent(name)) names.push_back(name);
    } else if (top) {
        for (const Member& member : top->assignment.members)
            if (absent(member.node.name)) names.push_back(member.node.name);
    }
    return names;
}

// Rule 8: absent members of the last generation are waited for, unless they are gone; after the
// lease alone has given the right, only those that are connected.
Time Machine::State::members_awaited_until(const std::vector<Candidate>& here,
                                           bool by_lease) const {
    if (!top || top->requeue < config.requeue) return kLongAgo;
    for (const Member& member : top->assignment.members) {
        const bool back = std::any_of(here.begin(), here.end(),
                                      [&](const Candidate& c) { return c.node == member.node; });
        const NodeState* node = roster.find(member.node);
        if (back || roster.gone(member.node) || (by_lease && (!node || !node->connected())))
            continue;
        return gathering_since + share(lease(), kMembersAwaited);
    }
    return kLongAgo;
}

void Machine::State::lead(Time now) {
    wake = holding() && held->lease.granted() && held->lease.held_until() != kNever
               ? held->lease.held_until() + Duration{1}
               : kNever;
    if (phase == Phase::closed) return closed(now);
    if (phase != Phase::gathering) return;
    if (now < retry_at) {
        wake = std::min(wake, retry_at);
        return;
    }
    bool by_lease = false;
    if (!may_follow(now, by_lease)) {
        wake = std::min(wake, may_follow_at());
        // Without evidence nothing may be written; then the wait must have an end all the same.
        const Time give_up = gathering_since + config.limits.times.join_timeout + lease();
        if (now < give_up) {
            wake = std::min(wake, give_up);
            return;
        }
        ending = Ending{.verdict = Verdict::unavailable,
                        .code = 69,
                        .sentence = "no member of generation " + text(newest()) + " came within " +
                                    to_text(config.limits.times.join_timeout) +
                                    ", so it cannot be known to have ended",
                        .first_failure = {},
                        .first_failure_node = {},
                        .consequences = 0};
        return close(now);
    }
    if (failure && !ending) decide_failure();
    if (ending) return propose_end();
    gather(now, by_lease);
}

}  // namespace ddprun::rendezvous
