// Short makers of plain values, so that a test shows only what matters to it: node("a"), at(1.5),
// limits(3, 4). Everything that an argument does not name keeps the default of its struct.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"
#include "rendezvous/model/reach.h"

namespace ddprun::test {

// Seconds as tests write them. Rounded to microseconds, so 0.45 is exactly 450 ms.
inline Duration sec(double seconds) {
    return std::chrono::microseconds{std::llround(seconds * 1e6)};
}
// The moment so many seconds after the start of a made-up clock.
inline Time at(double seconds) { return Time{sec(seconds)}; }

// A name stands for the whole node. A test about the restart of a node's process gives another
// incarnation.
inline rendezvous::NodeId node(std::string name, std::uint64_t incarnation = 1) {
    return {std::move(name), Incarnation{incarnation}};
}

// What a node brings into the job: places for workers, and nothing else (no address, no role).
inline rendezvous::Offer offer(int slots = 1) {
    rendezvous::Offer offer;
    offer.slots = slots;
    return offer;
}

// The same with --node-rank.
inline rendezvous::Offer offer_of_rank(int node_rank, int slots = 1) {
    rendezvous::Offer with_rank = offer(slots);
    with_rank.node_rank = node_rank;
    return with_rank;
}

// MIN and MAX nodes. Times are the defaults: a lease of 10 s, a last call of 30 s, a join timeout
// of 600 s.
inline rendezvous::Limits limits(int min_nodes, int max_nodes,
                                 int max_restarts = rendezvous::kAutoRestarts) {
    rendezvous::Limits limits;
    limits.min_nodes = min_nodes;
    limits.max_nodes = max_nodes;
    limits.max_restarts = max_restarts;
    return limits;
}

// Members in the order of their ranks, each with the same number of slots.
inline std::vector<rendezvous::Member> members(const std::vector<rendezvous::NodeId>& nodes,
                                               int slots = 1) {
    std::vector<rendezvous::Member> all;
    for (const rendezvous::NodeId& id : nodes)
        all.push_back({id, offer(slots), static_cast<int>(all.size()) * slots});
    return all;
}

// A whole generation of such members. Store, restarts and times keep their defaults.
inline rendezvous::Assignment assignment(std::int64_t generation,
                                         const std::vector<rendezvous::NodeId>& nodes,
                                         int slots = 1) {
    rendezvous::Assignment a;
    a.generation = Generation{generation};
    a.members = members(nodes, slots);
    a.world_size = static_cast<int>(nodes.size()) * slots;
    a.cause = "start";
    return a;
}

// A worker that exited with this code (0 is a success). All workers are on one node, so rank and
// local rank are the same.
inline rendezvous::WorkerOutcome exited(int rank, int exit_code, std::string error = {}) {
    rendezvous::WorkerOutcome outcome;
    outcome.rank = outcome.local_rank = rank;
    outcome.exit_code = exit_code;
    outcome.sentence = "rank " + std::to_string(rank) + " exited with " + std::to_string(exit_code);
    outcome.error = std::move(error);
    return outcome;
}

// A worker that a signal ended.
inline rendezvous::WorkerOutcome killed(int rank, int signal) {
    rendezvous::WorkerOutcome outcome = exited(rank, 0);
    outcome.signal = signal;
    outcome.sentence =
        "rank " + std::to_string(rank) + " was killed by signal " + std::to_string(signal);
    return outcome;
}

// How a job ended, as all its nodes hear it.
inline rendezvous::Ending ending(rendezvous::Verdict verdict, int code, std::string sentence) {
    rendezvous::Ending end;
    end.verdict = verdict;
    end.code = code;
    end.sentence = std::move(sentence);
    return end;
}

// What a message's line says of how far a generation has got.
inline std::string reached(rendezvous::Reach reach) {
    switch (reach) {
        case rendezvous::Reach::start:
            return "";
        case rendezvous::Reach::met:
            return " met";
        case rendezvous::Reach::progressed:
            return " progressed";
    }
    return "";
}

}  // namespace ddprun::test
