// The rules that the world breaks on purpose (World's Mutation): messages and answers are changed
// on their way, so the machines themselves stay as they are.
#include <algorithm>

#include "tests/sim/world.h"

namespace ddprun::sim {

using rendezvous::Ack;
using rendezvous::Assigned;
using rendezvous::Beat;
using rendezvous::LedgerCreated;

const char* to_string(Mutation mutation) {
    switch (mutation) {
        case Mutation::none:
            return "none";
        case Mutation::keeper_ignores_deadlines:
            return "keeper_ignores_deadlines";
        case Mutation::kills_are_slow:
            return "kills_are_slow";
        case Mutation::swept_too_early:
            return "swept_too_early";
        case Mutation::frozen_keeper_protects:
            return "frozen_keeper_protects";
        case Mutation::gone_too_early:
            return "gone_too_early";
        case Mutation::create_overwrites:
            return "create_overwrites";
        case Mutation::lost_is_won:
            return "lost_is_won";
        case Mutation::proposing_at_h:
            return "proposing_at_h";
        case Mutation::deadline_from_arrival:
            return "deadline_from_arrival";
        case Mutation::silent_members_count:
            return "silent_members_count";
        case Mutation::late_assigned_obeyed:
            return "late_assigned_obeyed";
        case Mutation::takeover_grants_early:
            return "takeover_grants_early";
        case Mutation::refusal_is_proof:
            return "refusal_is_proof";
        case Mutation::joins_forget:
            return "joins_forget";
        case Mutation::acks_forget:
            return "acks_forget";
        case Mutation::requeue_is_proof:
            return "requeue_is_proof";
        case Mutation::leaders_never_look:
            return "leaders_never_look";
        case Mutation::looks_are_old:
            return "looks_are_old";
    }
    return "?";
}

// What a node hears. `add` changes the lease that an Ack or an Assigned grants.
void World::mutate(Process& node, int connection, rendezvous::ToNode& message) {
    auto* ack = std::get_if<Ack>(&message);
    auto* assigned = std::get_if<Assigned>(&message);
    const auto add = [&](Duration more) {
        if (ack && ack->remaining) *ack->remaining += more;
        if (assigned) assigned->remaining += more;
    };
    // The leader creates the next entry at H + 0.2 L. With 0.2 L more for the workers it is as if
    // it created it at H.
    if (mutates(Mutation::proposing_at_h)) add(lease(0.2));
    // Takes away both reasons to refuse a late Assigned: a deadline that has passed, and an entry
    // below `seen`.
    if (mutates(Mutation::late_assigned_obeyed) && assigned) {
        assigned->remaining += lease(5);
        assigned->entry = std::max(assigned->entry, node.agent->snapshot().seen);
    }
    if (mutates(Mutation::deadline_from_arrival)) {
        // The rule counts the lease from the sending of the Beat. The time since then is added, so
        // it counts from the arrival of the Ack.
        const auto sent = beats_sent_.find({connection, ack        ? ack->beat
                                                        : assigned ? assigned->beat
                                                                   : 0});
        if (sent != beats_sent_.end()) add(now() - sent->second);
    }
    if (mutates(Mutation::acks_forget) && ack) ack->facts.reset();
    // An Ack that holds a generation and grants nothing is one before all echoes have come.
    if (mutates(Mutation::takeover_grants_early) && ack && ack->held > kNoGeneration &&
        !ack->remaining)
        ack->remaining = lease(0.8);
}

// What a leader hears.
void World::mutate(rendezvous::ToLeader& message) const {
    if (auto* join = std::get_if<rendezvous::Join>(&message);
        join && mutates(Mutation::joins_forget))
        join->facts = {};
}

// Two mutations need to know what a node has said and when.
void World::note_beat(int connection, const rendezvous::ToLeader& message) {
    const auto* join = std::get_if<rendezvous::Join>(&message);
    const auto* beat = join ? &join->beat : std::get_if<Beat>(&message);
    if (!beat) return;
    beats_sent_[{connection, beat->number}] = now();
    last_beat_[connection] = *beat;
}

rendezvous::Event World::mutate(const rendezvous::LedgerEntry& asked, rendezvous::Event answer) {
    auto& created = std::get<LedgerCreated>(answer);
    if (mutates(Mutation::lost_is_won) && created.outcome == LedgerCreated::Outcome::lost)
        created = {LedgerCreated::Outcome::won, asked, {}};
    if (mutates(Mutation::requeue_is_proof) && created.entry.allocation())
        created.entry.act = rendezvous::BeginsAllocation{false};
    return answer;
}

// Each Ack to a node that cannot be reached is echoed as if the node had received it. So a silent
// member does not hold H back.
void World::answer_for_silent(Process& leader, int connection, const rendezvous::ToNode& message) {
    const auto* ack = std::get_if<Ack>(&message);
    const auto last = last_beat_.find(connection);
    if (!mutates(Mutation::silent_members_count) || !ack || last == last_beat_.end()) return;
    Process& node = *ends_[connection].first;
    // A node that answers by itself needs no help.
    const bool silent = !node.alive || !host_of(node).up || paused(host_of(node)) || frozen(node) ||
                        !network_.reachable(node.host, leader.host);
    if (!silent) return;
    clock_.after(lease(0.05), [this, &leader, connection, number = ack->number] {
        Beat beat = last_beat_.at(connection);
        // A number that the node itself never uses, so that the Beat counts as a new one.
        beat.number += 1'000'000 + number;
        beat.echo = number;
        deliver(leader, false, [this, &leader, connection, beat] {
            step_service(leader, rendezvous::Came{rendezvous::Session{connection}, beat});
        });
    });
}

// The leader calls a node whose connection has ended. If it is refused, it gets a Gone that no
// keeper has said.
void World::take_refusal_for_proof(Process& leader, const Process& node) {
    if (!mutates(Mutation::refusal_is_proof)) return;
    clock_.after(lease(0.05), [this, &leader, &node] {
        if (reach(leader.host, node.host) != Reached::refusal) return;
        post_service(leader, rendezvous::Came{rendezvous::Session{-1}, rendezvous::Gone{node.id}});
    });
}

}  // namespace ddprun::sim
