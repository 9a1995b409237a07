// Jobs whose workers fail, stand still or are told to stop, and whose nodes come, leave and return.
#include "tests/sim/stories.h"

namespace ddprun::sim {
namespace {

TEST(Sim, FourNodesStartAndSucceed) {
    for_seeds([](auto seed) { return calm(4, seed); },
              [](const World& world) {
                  EXPECT_EQ(generations(world).size(), 1u);
                  expect_all_exit(world, Verdict::succeeded, 0);
              });
}

TEST(Sim, OneNodeAloneSucceedsWithoutALease) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(1, seed);
            config.faults = {fault(Fault::Kind::host_paused, 1s, 0, 5s)};
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).size(), 1u);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

TEST(Sim, AFailedWorkerOnTheThirdNodeRestartsAllOnce) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 2)};
            return config;
        },
        [](const World& world) {
            const auto made = generations(world);
            ASSERT_EQ(made.size(), 2u);
            EXPECT_EQ(made[1].assignment.restarts, 1);
            EXPECT_EQ(made[1].assignment.members.size(), 4u);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// Besides beats and the handshake: four at most in a generation, whatever the size of the job.
TEST(Sim, ANodeSendsAFewMessagesAGenerationHoweverManyNodesThereAre) {
    for (const int nodes : {4, 64}) {
        WorldConfig config = calm(nodes, 1);
        config.limits.max_restarts = 5;
        config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 2),
                         fault(Fault::Kind::worker_fails, 3500ms, 3)};
        World world(config);
        world.run();
        const auto made = static_cast<int>(generations(world).size());
        ASSERT_GE(made, 2);
        ASSERT_EQ(world.said().size(), static_cast<std::size_t>(nodes));
        for (const auto& [name, count] : world.said()) EXPECT_LE(count, 4 * made) << name;
        expect_all_exit(world, Verdict::succeeded, 0);
    }
}

// A worker fails at 1.5 s. On true time, what entry 1 says of the restart is the time from then to
// the entry, and with the end's it reaches to the first progress: within a way through the network.
TEST(Sim, ThePhasesOfARestartAreTheTimeThatItTook) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.progress = true;
            config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 2)};
            return config;
        },
        [](const World& world) {
            const auto made = generations(world);
            ASSERT_EQ(made.size(), 2u);
            const LedgerEntry& end = world.ledger().entries().back();
            ASSERT_EQ(end.restart.totals.restarts, 1);
            Duration lost{};
            for (const Duration took : end.restart.totals.took) lost += took;
            // Workers report for the first time 0.4 lease after their start, and again each 0.4.
            const Duration start = world.started(Generation{1}) - Time{1500ms};
            EXPECT_GE(lost, start - 20ms);
            EXPECT_LE(lost, start + 420ms);
            const auto& times = made[1].restart.times;
            const auto stopped = static_cast<std::size_t>(rendezvous::RestartPhase::stopped);
            EXPECT_GT(times[stopped].took, Duration{}) << "a worker takes up to 0.2 lease to end";
            EXPECT_FALSE(times[stopped].node.empty());
        });
}

TEST(Sim, AUsedUpBudgetGivesTheWorkersCodeEverywhere) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.limits.max_restarts = 1;
            config.limits.crash_loop = 0;
            config.script = [](Generation, int, int rank) {
                return rank == 2 ? Behaviour{500ms, 7, false} : Behaviour{3s, 0, false};
            };
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).size(), 2u);
            expect_all_exit(world, Verdict::worker_failed, 7);
        });
}

TEST(Sim, SixNodesTwoOfWhichCrashDuringTheStopGoOnWithFour) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(6, seed);
            config.limits.min_nodes = 3;
            config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 2),
                             fault(Fault::Kind::process_killed, 1510ms, 4),
                             fault(Fault::Kind::host_lost, 1520ms, 5)};
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).back().assignment.members.size(), 4u);
            const LedgerEntry* end = world.ledger().end();
            ASSERT_TRUE(end);
            EXPECT_EQ(end->end()->verdict, Verdict::succeeded);
        });
}

TEST(Sim, ALateNodeJoinsWhileOthersGather) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.starts = {0ms, 10ms, 20ms, 3s};
            return config;
        },
        [](const World& world) {
            ASSERT_EQ(generations(world).size(), 1u);
            EXPECT_EQ(generations(world)[0].assignment.members.size(), 4u);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

TEST(Sim, AReplacedProcessComesBackAsAnother) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(3, seed);
            config.consequences = 0;
            config.faults = {fault(Fault::Kind::process_replaced, 1500ms, 1, 200ms)};
            return config;
        },
        [](const World& world) {
            ASSERT_EQ(generations(world).size(), 2u);
            EXPECT_EQ(generations(world)[1].assignment.restarts, 0);
            const LedgerEntry* end = world.ledger().end();
            ASSERT_TRUE(end);
            EXPECT_EQ(end->end()->verdict, Verdict::succeeded);
        });
}

// Rank 2 stands still after its second step, in the first generation: found, looked at, restarted.
TEST(Sim, AWorkerThatStandsStillIsFoundAndAllStartAgain) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.progress = true;
            config.limits.hang_timeout = 2s;
            config.script = [](Generation generation, int, int rank) {
                return Behaviour{3s, 0, false, rank == 2 && generation.value == 0 ? 2 : -1};
            };
            return config;
        },
        [](const World& world) {
            const auto made = generations(world);
            ASSERT_EQ(made.size(), 2u);
            EXPECT_EQ(made[1].assignment.restarts, 1);
            EXPECT_NE(made[1].assignment.cause.find("no rank has made progress"),
                      std::string::npos);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

TEST(Sim, AWorkerThatAlwaysStandsStillEndsTheJobWithItsOwnCode) {
    for (const int nodes : {1, 4})
        for_seeds(
            [nodes](auto seed) {
                WorldConfig config = calm(nodes, seed);
                config.progress = true;
                config.limits.max_restarts = 1;
                config.limits.hang_timeout = 2s;
                config.script = [](Generation, int, int rank) {
                    return Behaviour{3s, 0, false, rank == 0 ? 2 : -1};
                };
                return config;
            },
            [](const World& world) {
                EXPECT_EQ(generations(world).size(), 2u);
                expect_all_exit(world, Verdict::worker_failed, kHungCode);
            });
}

// Whatever runs on host 1 fails: after the second time the spare has its place, and the job ends
// well.
TEST(Sim, ANodeThatFailsTwiceMakesRoomForASpare) {
    for (const bool blame : {true, false})
        for_seeds(
            [blame](auto seed) {
                WorldConfig config = calm(4, seed);
                config.limits.min_nodes = config.limits.max_nodes = 3;
                config.limits.crash_loop = 0;
                config.limits.blame = blame;
                config.consequences = 0;  // a late message would make one of them the first
                config.starts = {0ms, 10ms, 20ms, 700ms};
                config.script = [](Generation, int host, int) {
                    return host == 1 ? Behaviour{1s, 3, false} : Behaviour{3s, 0, false};
                };
                return config;
            },
            [blame](const World& world) {
                const auto made = generations(world);
                EXPECT_EQ(made.size(), blame ? 3u : 4u);
                expect_all_exit(world, blame ? Verdict::succeeded : Verdict::worker_failed,
                                blame ? 0 : 3);
                const LedgerEntry& last = world.ledger().entries().back();
                EXPECT_EQ(last.blame.nodes.size(), blame ? 1u : 0u);
            });
}

TEST(Sim, AUsersSignalOnOneNodeStopsAllWithIt) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.faults = {fault(Fault::Kind::stop_asked, 1500ms, 2)};
            return config;
        },
        [](const World& world) { expect_all_exit(world, Verdict::user_signal, 128 + 15); });
}

// Once, after the last worker, and never when a plain signal comes meanwhile; the invariants look.
TEST(Sim, ANamedSignalOnOneNodeRequeuesTheJob) {
    for (const bool cancelled : {false, true})
        for_seeds(
            [&](auto seed) {
                WorldConfig config = calm(4, seed);
                config.faults = {fault(Fault::Kind::stop_asked, 1500ms, 2, 1ms)};
                if (cancelled) config.faults.push_back(fault(Fault::Kind::stop_asked, 1501ms, 1));
                return config;
            },
            [&](const World& world) {
                expect_all_exit(world, Verdict::work_left, 75);
                EXPECT_EQ(world.requeues(), cancelled ? 0 : 1);
            });
}

// Slurm signals a worker before any ddprun: the stop that follows was the cause of its death, and of
// those that it has caused.
TEST(Sim, WorkersThatSlurmSignalsFirstHaveNotFailed) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.in_slurm = true;
            config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 1),
                             fault(Fault::Kind::stop_asked, 2200ms, 2)};
            return config;
        },
        [](const World& world) {
            expect_all_exit(world, Verdict::user_signal, 128 + 15);
            EXPECT_EQ(generations(world).size(), 1u);
        });
}

// A node that comes late is taken in while the others run, after a snapshot, and costs no restart.
TEST(Sim, ALateNodeGrowsTheWorld) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(3, seed);
            config.limits.min_nodes = 2;
            config.limits.times.last_call = 100ms;
            config.progress = true;
            config.work = 6s;
            config.starts = {0ms, 10ms, 2s};
            return config;
        },
        [](const World& world) {
            ASSERT_EQ(generations(world).size(), 2u);
            EXPECT_EQ(generations(world)[0].assignment.members.size(), 2u);
            EXPECT_EQ(generations(world)[1].assignment.members.size(), 3u);
            EXPECT_EQ(generations(world)[1].assignment.restarts, 0);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

}  // namespace
}  // namespace ddprun::sim
