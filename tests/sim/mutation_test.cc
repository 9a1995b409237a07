// The proof that the invariants can fail. The world breaks one rule on purpose, and random jobs, or
// a story that was written for this rule, must find it. Without this proof, a check that never
// looks would pass for ever.
#include <iostream>

#include "tests/sim/shrink.h"
#include "tests/sim/stories.h"

namespace ddprun::sim {
namespace {

// Returns the first seed at which the mutation is found, or 0 if none of so many seeds finds it.
std::uint64_t found_at(Mutation mutation, std::uint64_t seeds) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        WorldConfig config = hard_config(seed);
        config.mutation = mutation;
        World world(config);
        world.run();
        if (world.violations().empty()) continue;
        std::cout << to_string(mutation) << " is found at seed " << seed << ": "
                  << first_violation(world) << "\n";
        return seed;
    }
    return 0;
}

// Of a job with many faults the shrinker leaves only those that are needed: without any of them the
// job holds its invariants. proposing_at_h serves as the bug, because random jobs find it.
TEST(Shrink, LeavesOnlyTheFaultsThatMatter) {
    WorldConfig config = hard_config(found_at(Mutation::proposing_at_h, 600));
    config.mutation = Mutation::proposing_at_h;
    const Shrunk shrunk = shrink(config);
    EXPECT_LT(shrunk.config.faults.size(), config.faults.size());
    EXPECT_FALSE(shrunk.violation.empty());
    for (std::size_t i = 0; i < shrunk.config.faults.size(); ++i) {
        WorldConfig less = shrunk.config;
        less.faults.erase(less.faults.begin() + static_cast<std::ptrdiff_t>(i));
        World world(less);
        world.run();
        EXPECT_EQ(first_violation(world), "") << "without fault " << i;
    }
}

class Mutations : public testing::TestWithParam<Mutation> {};

// Most broken rules are found by random jobs. Those that are not in the list have a story below or
// in history_test.cc.
TEST_P(Mutations, AreFound) { EXPECT_GT(found_at(GetParam(), 600), 0); }

INSTANTIATE_TEST_SUITE_P(Sim, Mutations,
                         testing::Values(Mutation::keeper_ignores_deadlines,
                                         Mutation::kills_are_slow, Mutation::swept_too_early,
                                         Mutation::create_overwrites, Mutation::lost_is_won,
                                         Mutation::proposing_at_h, Mutation::deadline_from_arrival,
                                         Mutation::silent_members_count,
                                         Mutation::late_assigned_obeyed, Mutation::refusal_is_proof,
                                         Mutation::joins_forget),
                         [](const auto& info) { return to_string(info.param); });

// How many of 150 seeds of a story find the mutation. The story must be clean without it.
int found_in(Mutation mutation, const std::function<WorldConfig(std::uint64_t)>& scenario) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        WorldConfig config = scenario(seed);
        config.mutation = mutation;
        World world(config);
        world.run();
        found += !world.violations().empty();
    }
    return found;
}

// n1's ddprun is killed, and n0 goes on alone as soon as n1's keeper has said Gone. If the keeper
// says so before n1's workers are dead, n0's new ones may start beside them. This needs a seed in
// which n0's old workers stop faster than n1's die, so there are no other nodes and no
// consequences.
WorldConfig one_of_two_is_killed(std::uint64_t seed) {
    WorldConfig config = calm(2, seed);
    config.limits.min_nodes = 1;
    config.consequences = 0;
    config.faults = {fault(Fault::Kind::process_killed, 1500ms, 1)};
    return config;
}

TEST(Mutation, AKeepersWordBeforeTheWorkersAreDeadIsFound) {
    EXPECT_EQ(found_in(Mutation::none, one_of_two_is_killed), 0);
    EXPECT_GT(found_in(Mutation::gone_too_early, one_of_two_is_killed), 0);
}

// The keeper of n3 freezes, and then n3 is cut off. Its lease passes before ddprun has given the
// keeper up: nobody but ddprun can end its workers in time.
WorldConfig cut_off_below_a_frozen_keeper(std::uint64_t seed) {
    WorldConfig config = calm(4, seed);
    config.limits.min_nodes = 3;
    config.consequences = 0;
    config.faults = {fault(Fault::Kind::cut_off, 1500ms, 3, 5s),
                     fault(Fault::Kind::keeper_freezes, 1600ms + seed * 3ms, 3)};
    return config;
}

TEST(Mutation, WorkersBelowAFrozenKeeperAreFound) {
    EXPECT_EQ(found_in(Mutation::none, cut_off_below_a_frozen_keeper), 0);
    EXPECT_GT(found_in(Mutation::frozen_keeper_protects, cut_off_below_a_frozen_keeper), 0);
}

// The leader is lost, and n1 takes over. n3 is cut off before it has echoed an Ack of n1, and
// trains on until its own deadline. Before the takeover is given up, n2 is cut off, too, and n1
// goes on with the spares. If the takeover has extended the lease already, n2 and the new
// generation train at the same time.
WorldConfig cut_off_during_a_takeover(std::uint64_t seed) {
    WorldConfig config = led_by_a_spare(seed);
    config.faults = {fault(Fault::Kind::step_killed, 1500ms, 0),
                     fault(Fault::Kind::cut_off, 1502ms + seed * 100us, 3, 5s),
                     fault(Fault::Kind::cut_off, 2250ms, 2, 3s)};
    return config;
}

TEST(Mutation, ATakeoverThatGrantsBeforeTheEchoesIsFound) {
    EXPECT_EQ(found_in(Mutation::none, cut_off_during_a_takeover), 0);
    EXPECT_GT(found_in(Mutation::takeover_grants_early, cut_off_during_a_takeover), 0);
}

}  // namespace
}  // namespace ddprun::sim
