// What the tests of whole jobs in virtual time share: a calm job to which one thing happens, and
// what is checked in each of them afterwards.
//
// A lease of 1 s makes times easy to read: 300 ms are 0.3 of a lease.
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

// A job in which nothing goes wrong by itself. It needs all its nodes: lease 1 s, join timeout 5 s,
// 3 s of work, at most 3 restarts. The ledger loses no answers, so that a story has exactly the
// faults that it names.
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

// Six nodes with MAX 3 and MIN 2: n0 leads and is a spare; n1, n2 and n3 train; n4 and n5 are
// spares. So the leader can be lost without a lost worker.
inline WorldConfig led_by_a_spare(std::uint64_t seed) {
    WorldConfig config = calm(6, seed);
    config.limits.max_nodes = 3;
    config.limits.min_nodes = 2;
    config.limits.times.last_call = 0ms;
    // n0 leads from the start and joins at 0.7 s, after the three places are taken. n4 and n5 come
    // in between.
    config.leader_joins_late = true;
    config.starts = {0ms, 1ms, 1ms, 1ms, 600ms, 600ms};
    config.offer_node_ranks = false;
    config.consequences = 0;
    // Long enough for a fault at 1.5 s, a takeover, and more after it.
    config.work = 6s;
    return config;
}

// The entries that make a generation, without takeovers and the end.
inline std::vector<LedgerEntry> generations(const World& world) {
    std::vector<LedgerEntry> found;
    for (const LedgerEntry& entry : world.ledger().entries())
        if (entry.makes_generation()) found.push_back(entry);
    return found;
}

inline std::string first_violation(const World& world) {
    return world.violations().empty() ? "" : world.violations().front();
}

// Runs the same job with some seeds: delays, clocks and dice differ, the story does not. Each job
// must hold the invariants and then what `expect` says.
template <class Expect>
void for_seeds(const std::function<WorldConfig(std::uint64_t)>& make, Expect expect,
               std::uint64_t seeds = 10) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
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

// All nodes on living hosts end with the same verdict and code: a scheduler needs one result.
inline void expect_all_exit(const World& world, Verdict verdict, int code) {
    for (const auto& process : world.processes()) {
        if (!world.hosts()[process->host].up || !process->agent) continue;
        ASSERT_TRUE(process->exit) << process->id.name;
        EXPECT_EQ(process->exit->verdict, verdict) << process->id.name;
        EXPECT_EQ(process->exit->code, code) << process->id.name;
    }
}

}  // namespace ddprun::sim
