// Nodes that get SIGTERM and leave while the job goes on (PROTOCOL.md, rule 23, "Leaving").
#include <algorithm>

#include "tests/sim/stories.h"

namespace ddprun::sim {
namespace {

// Three nodes, of which two are enough. One gets SIGTERM at 1.5 s.
WorldConfig left_by(int host, std::uint64_t seed) {
    WorldConfig config = calm(3, seed);
    config.limits.min_nodes = 2;
    config.leaves = true;
    config.faults = {fault(Fault::Kind::stop_asked, 1500ms, host)};
    return config;
}

// That node ends with 143, all others as the job does.
void expect_left(const World& world, const std::string& name) {
    for (const auto& process : world.processes()) {
        ASSERT_TRUE(process->exit) << process->id.name;
        const bool left = process->id.name == name;
        EXPECT_EQ(process->exit->verdict, left ? Verdict::left : Verdict::succeeded)
            << process->id.name;
        EXPECT_EQ(process->exit->code, left ? 143 : 0);
    }
}

// The rest begins again at once, with nobody to wait for and no restart used up.
TEST(Leaving, AMemberLeavesAndTheRestGoOn) {
    for_seeds([](auto seed) { return left_by(2, seed); },
              [](const World& world) {
                  const auto made = generations(world);
                  ASSERT_EQ(made.size(), 2u);
                  EXPECT_EQ(made[1].assignment.members.size(), 2u);
                  EXPECT_EQ(made[1].assignment.restarts, 0);
                  EXPECT_TRUE(made[1].blame.causes.empty());
                  EXPECT_EQ(made[1].assignment.cause,
                            "node n2 leaves (SIGTERM); the job goes on without it");
                  EXPECT_LT(world.started(made[1].assignment.generation), Time{1500ms + 500ms});
                  expect_left(world, "n2");
              });
}

// It leads until the others run. Then one of them takes their generation over, and no worker stops.
TEST(Leaving, Rule23j_TheLeaderLeavesAGenerationThatRuns) {
    for_seeds([](auto seed) { return left_by(0, seed); },
              [](const World& world) {
                  const auto made = generations(world);
                  ASSERT_EQ(made.size(), 2u);
                  EXPECT_EQ(made[1].assignment.members.size(), 2u);
                  EXPECT_EQ(made[1].assignment.restarts, 0);
                  EXPECT_LT(world.started(made[1].assignment.generation), Time{1500ms + 500ms});
                  EXPECT_TRUE(std::ranges::any_of(world.ledger().entries(), [](const auto& each) {
                      return each.takes_over();
                  }));
                  expect_left(world, "n0");
                  for (const auto& process : world.processes())
                      EXPECT_TRUE(process->id.name != "n0" || process->exited_at < Time{2100ms});
              });
}

// Without a ledger that the others read, nobody could lead after it. The job stops.
TEST(Leaving, Rule23k_ALeaderThatNobodyCanFollowStopsTheJob) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = left_by(0, seed);
            config.succession = false;
            return config;
        },
        [](const World& world) { expect_all_exit(world, Verdict::user_signal, 143); });
}

// The second would leave one node of two. Also where all get the signal at once.
TEST(Leaving, Rule23i_WhereTooFewWouldBeLeftTheJobStops) {
    for (const Duration later : {0ms, 30ms, 300ms, 1000ms})
        for_seeds(
            [=](auto seed) {
                WorldConfig config = left_by(2, seed);
                config.faults.push_back(fault(Fault::Kind::stop_asked, 1500ms + later, 1));
                return config;
            },
            [](const World& world) {
                int stopped = 0;
                for (const auto& process : world.processes()) {
                    ASSERT_TRUE(process->exit);
                    EXPECT_EQ(process->exit->code, 143);
                    stopped += process->exit->verdict == Verdict::user_signal ? 1 : 0;
                }
                EXPECT_GE(stopped, 2);
                EXPECT_EQ(world.ledger().end()->end()->verdict, Verdict::user_signal);
            });
}

// Before the first generation and as a spare, there is nothing to stop.
TEST(Leaving, ASpareLeavesAtOnce) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = left_by(2, seed);
            config.limits.max_nodes = config.limits.min_nodes = 2;
            config.limits.min_nodes = 1;
            config.starts = {0ms, 0ms, 300ms};
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).size(), 1u);
            expect_left(world, "n2");
        });
}

// The request is told to the next leader.
TEST(Leaving, Rule23l_ItOutlivesTheLeader) {
    for (const Duration later : {10ms, 60ms, 150ms})
        for_seeds(
            [=](auto seed) {
                WorldConfig config = left_by(2, seed);
                config.hosts = config.limits.max_nodes = 4;
                config.faults.push_back(fault(Fault::Kind::process_killed, 1500ms + later, 0));
                return config;
            },
            [](const World& world) {
                EXPECT_EQ(generations(world).back().assignment.members.size(), 2u);
                EXPECT_EQ(generations(world).back().assignment.restarts, 0);
                for (const auto& process : world.processes())
                    EXPECT_EQ(process->id.name == "n2",
                              process->exit && process->exit->verdict == Verdict::left);
            });
}

}  // namespace
}  // namespace ddprun::sim
