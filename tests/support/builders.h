// Short makers of plain values, so that a test shows only what matters to it: node("a"), at(1.5),
// limits(3, 4). Names stand in for whole nodes: the incarnation is 1 unless the test is about
// restarts of a process.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"

namespace ddprun::test {

// Seconds as tests write them: 0.45 is exactly 450 ms.
inline Duration sec(double seconds) {
    return std::chrono::microseconds{std::llround(seconds * 1e6)};
}
inline Time at(double seconds) { return Time{sec(seconds)}; }

inline rendezvous::NodeId node(std::string name, std::uint64_t incarnation = 1) {
    return {std::move(name), Incarnation{incarnation}};
}

inline rendezvous::Offer offer(int slots = 1) {
    rendezvous::Offer offer;
    offer.slots = slots;
    return offer;
}

inline rendezvous::Offer offer_of_rank(int node_rank, int slots = 1) {
    rendezvous::Offer with_rank = offer(slots);
    with_rank.node_rank = node_rank;
    return with_rank;
}

// A lease of 10 s, a last call of 30 s, a join timeout of 600 s: the defaults.
inline rendezvous::Limits limits(int min_nodes, int max_nodes,
                                 int max_restarts = rendezvous::kAutoRestarts) {
    rendezvous::Limits limits;
    limits.min_nodes = min_nodes;
    limits.max_nodes = max_nodes;
    limits.max_restarts = max_restarts;
    return limits;
}

// Members in the order of their ranks, each with so many slots.
inline std::vector<rendezvous::Member> members(const std::vector<rendezvous::NodeId>& nodes,
                                               int slots = 1) {
    std::vector<rendezvous::Member> all;
    for (const rendezvous::NodeId& id : nodes)
        all.push_back({id, offer(slots), static_cast<int>(all.size()) * slots});
    return all;
}

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

// A worker that exited with this code; 0 is a success.
inline rendezvous::WorkerOutcome exited(int rank, int exit_code, std::string error = {}) {
    rendezvous::WorkerOutcome outcome;
    outcome.rank = outcome.local_rank = rank;
    outcome.exit_code = exit_code;
    outcome.sentence = "rank " + std::to_string(rank) + " exited with " + std::to_string(exit_code);
    outcome.error = std::move(error);
    return outcome;
}

inline rendezvous::WorkerOutcome killed(int rank, int signal) {
    rendezvous::WorkerOutcome outcome = exited(rank, 0);
    outcome.signal = signal;
    outcome.sentence =
        "rank " + std::to_string(rank) + " was killed by signal " + std::to_string(signal);
    return outcome;
}

inline rendezvous::Ending ending(rendezvous::Verdict verdict, int code, std::string sentence) {
    rendezvous::Ending end;
    end.verdict = verdict;
    end.code = code;
    end.sentence = std::move(sentence);
    return end;
}

}  // namespace ddprun::test
