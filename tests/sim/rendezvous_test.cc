// Stories of jobs that meet at a rendezvous outside of them, or at two with one ledger. The
// endpoint may lead to either, so a node can come back to a leader that another one has succeeded.
// Inside a job that is rare: there a member calls all others before it calls a leader that is none.
#include "tests/sim/stories.h"

namespace ddprun::sim {
namespace {

// n0, n1 and n2 train, n3 is a spare (or more of them). The last two hosts have a rendezvous each.
// All nodes call the first of both at their start; each lost connection leads to the other one.
WorldConfig at_two(int nodes, std::uint64_t seed) {
    WorldConfig config = calm(nodes, seed);
    config.limits.min_nodes = config.limits.max_nodes = 3;
    config.limits.times.last_call = 0ms;
    config.limits.times.join_timeout = 10s;
    config.starts = {0ms, 10ms, 20ms};
    for (int i = 3; i < nodes; ++i) config.starts.push_back(600ms);
    config.outside = 2;
    // Earlier it would find no member and count the generation as over.
    config.outside_apart = 1450ms;
    config.consequences = 0;
    config.work = 8s;
    return config;
}

void reset(WorldConfig& config, Duration at, int from, int to) {
    for (int host = from; host <= to; ++host)
        config.faults.push_back(fault(Fault::Kind::connection_reset, at, host));
}

TEST(Rendezvous, OneOutsideIsKilledAndComesBack) {
    for (const Duration away : {100ms, 500ms, 1000ms})
        for_seeds(
            [=](auto seed) {
                WorldConfig config = calm(3, seed);
                config.outside = 1;
                config.consequences = 0;
                config.work = 6s;
                config.faults = {fault(Fault::Kind::process_replaced, 1500ms, 3, away)};
                return config;
            },
            [](const World& world) {
                ASSERT_TRUE(world.ledger().end());
                EXPECT_EQ(world.ledger().end()->end()->verdict, Verdict::succeeded);
                EXPECT_EQ(generations(world).back().assignment.restarts, 0);
            });
}

// With the ledger in memory the new process knows nothing of the job, and its first nodes would be
// those of the old one. They are refused, so no second generation 0 begins beside the first.
TEST(Rendezvous, OneThatHasForgottenTheJobRefusesItsNodes) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(3, seed);
            config.outside = 1;
            config.forgets = true;
            config.faults = {fault(Fault::Kind::process_replaced, 1500ms, 3, 100ms)};
            return config;
        },
        [](const World& world) {
            expect_all_exit(world, Verdict::unavailable, 69);
            // At once, and not only when they have found nobody for two leases.
            for (const auto& process : world.processes()) {
                if (!process->agent) continue;
                EXPECT_LT(process->exited_at, Time{1500ms + 600ms});
            }
        });
}

// All nodes go to the second rendezvous, which takes over. Then the members go back to the first,
// which still holds the generation, while the spares stay. The members have seen the newer entry,
// so they must not follow the first one: the second ends the generation when they are silent, and
// begins another one with the spares.
WorldConfig back_to_a_succeeded_leader(std::uint64_t seed) {
    WorldConfig config = at_two(6, seed);
    reset(config, 1500ms, 0, 5);
    reset(config, 1600ms + seed * 2ms, 0, 2);
    return config;
}
TEST(Rendezvous, NobodyFollowsALeaderThatWasSucceeded) {
    for_seeds(
        back_to_a_succeeded_leader, [](const World&) {}, 20);
}

// The same, but the members hear nothing of the second leader from the moment at which it takes
// over (the cut), and go back to the first, which goes on. What they have echoed before the
// takeover is no proof that they follow the second one.
WorldConfig only_old_echoes(std::uint64_t seed) {
    WorldConfig config = at_two(6, seed);
    reset(config, 1500ms, 0, 5);
    const Duration taken_over = 1502ms + seed * 50us;
    config.faults.push_back(fault(Fault::Kind::cut_to_others, taken_over, 7, 200ms));
    reset(config, 1620ms, 0, 2);
    return config;
}
TEST(Rendezvous, EchoesBeforeATakeoverProveNothing) {
    for_seeds(
        only_old_echoes, [](const World&) {}, 40);
}

// The members go to the second rendezvous, which takes over, but they do not hear of it (the cut)
// and go back to the first. It goes on for more than a lease. Then n2 is cut off and trains, a
// worker of n1 fails, and the first leader reads of the takeover. No other leader has been heard
// for a lease. But it has granted n2 a lease itself. It has three candidates at once.
WorldConfig own_lease_before_a_takeover(std::uint64_t seed) {
    WorldConfig config = at_two(4, seed);
    reset(config, 1500ms, 0, 2);
    const Duration taken_over = 1502ms + seed * 50us;
    config.faults.push_back(fault(Fault::Kind::cut_to_others, taken_over, 5, 200ms));
    reset(config, 1620ms, 0, 2);
    config.faults.push_back(fault(Fault::Kind::cut_off, 2800ms, 2, 5s));
    config.faults.push_back(fault(Fault::Kind::worker_fails, 2820ms, 1));
    // The spare visits the second one and tells the first one of its entry.
    reset(config, 2600ms, 3, 3);
    reset(config, 2840ms, 3, 3);
    return config;
}
TEST(Rendezvous, ALeaderKeepsToTheLeaseThatItGrantedBeforeATakeover) {
    for_seeds(
        own_lease_before_a_takeover, [](const World&) {}, 40);
}

// The first rendezvous records a generation, and hears late that it has: its ledger stalls.
// Meanwhile its members have lost it, and have vowed to the second one, whose ledger stalls, too,
// never to run that generation. n1 comes back to the first one and is sent into it. Only its vow
// keeps it from training beside n0, with which the second one goes on. In half of the seeds the
// stalled create comes in time.
WorldConfig back_with_a_vow(std::uint64_t seed) {
    WorldConfig config = at_two(2, seed);
    config.limits.min_nodes = 1;
    config.limits.max_nodes = 2;
    config.limits.times.last_call = 1s;
    config.starts = {0ms, 20ms};
    config.outside_apart = 50ms;
    config.faults = {fault(Fault::Kind::ledger_stalls_here, 15ms, 2, 350ms),
                     fault(Fault::Kind::ledger_stalls_here, 70ms, 3, 300ms)};
    reset(config, 70ms, 0, 1);
    reset(config, 150ms, 1, 1);
    return config;
}
TEST(Rendezvous, AVowIsKeptWhoeverLeads) {
    for_seeds(
        back_with_a_vow,
        [](const World& world) {
            ASSERT_TRUE(world.ledger().end());
            EXPECT_EQ(world.ledger().end()->end()->verdict, Verdict::succeeded);
        },
        40);
}

}  // namespace
}  // namespace ddprun::sim
