// What the stories of whole jobs in virtual time share: a calm job to which something happens, and
// what is asked of each afterwards.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/sim/world.h"

namespace ddprun::sim {

using namespace std::chrono_literals;
using rendezvous::LedgerEntry;
using rendezvous::Verdict;

// A calm job of `nodes`, all of which are needed: lease 1 s, join timeout 5 s, 3 s of work.
inline WorldConfig calm(int nodes, std::uint64_t seed = 1) {
    WorldConfig config;
    config.seed = seed;
    config.hosts = nodes;
    config.limits.min_nodes = config.limits.max_nodes = nodes;
    config.limits.max_restarts = 3;
    config.limits.times = {.lease = 1s, .join_timeout = 5s, .last_call = 500ms};
    config.lost_answers = 0;
    return config;
}

inline Fault fault(Fault::Kind kind, Duration at, int host, Duration lasts = {}) {
    return {kind, Time{at}, host, lasts};
}

// n0 leads and is a spare; n1, n2, n3 train, n4 and n5 wait.
inline WorldConfig led_by_a_spare(std::uint64_t seed) {
    WorldConfig config = calm(6, seed);
    config.limits.max_nodes = 3;
    config.limits.min_nodes = 2;
    config.limits.times.last_call = 0ms;
    config.leader_joins_late = true;
    config.starts = {0ms, 1ms, 1ms, 1ms, 600ms, 600ms};
    config.offer_node_ranks = false;
    config.consequences = 0;
    config.work = 6s;
    return config;
}

inline std::vector<LedgerEntry> generations(const World& world) {
    std::vector<LedgerEntry> found;
    for (const LedgerEntry& entry : world.ledger().entries())
        if (entry.makes_generation()) found.push_back(entry);
    return found;
}

inline std::string first_violation(const World& world) {
    return world.violations().empty() ? "" : world.violations().front();
}

// Runs the same job with some seeds; each must hold the invariants and then what `expect` says.
template <class Expect>
void for_seeds(const std::function<WorldConfig(std::uint64_t)>& make, Expect expect) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        World world(make(seed));
        world.run();
        ASSERT_EQ(first_violation(world), "") << "seed " << seed << "\n" << world.tail(60);
        expect(world);
        if (testing::Test::HasFailure()) {
            std::cerr << "seed " << seed << "\n" << world.tail(60);
            return;
        }
    }
}

inline void expect_all_exit(const World& world, Verdict verdict, int code) {
    for (const auto& process : world.processes()) {
        if (!world.hosts()[process->host].up) continue;
        ASSERT_TRUE(process->exit) << process->id.name;
        EXPECT_EQ(process->exit->verdict, verdict) << process->id.name;
        EXPECT_EQ(process->exit->code, code) << process->id.name;
    }
}

}  // namespace ddprun::sim
