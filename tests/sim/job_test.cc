// Stories of whole jobs in virtual time: workers fail, stand still or are asked to stop, and nodes
// come, leave and return. Each story runs with ten seeds.
#include "tests/sim/stories.h"
#include "tests/support/limits.h"

namespace ddprun::sim {
namespace {

// Nothing goes wrong: one generation, and success everywhere.
TEST(Sim, FourNodesStartAndSucceed) {
    for_seeds([](auto seed) { return calm(4, seed); },
              [](const World& world) {
                  EXPECT_EQ(generations(world).size(), 1u);
                  expect_all_exit(world, Verdict::succeeded, 0);
              });
}

// With one node, no other generation could train at the same time. So a pause of five leases must
// not cost a restart.
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

// The most usual case: one worker fails. All workers of all nodes start again, once, and the
// failure uses up one restart.
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

// Besides Beats with their answers and the opening, few messages travel in a generation, whatever
// the size of the job. One message for each pair of nodes would break a job of thousands of nodes.
// 4 and 64 nodes have the same limit.
TEST(Sim, AGenerationNeedsFewMessagesHoweverManyNodesThereAre) {
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
        int most = 0;
        for (const auto& [name, count] : world.said()) most = std::max(most, count);
        EXPECT_TRUE(test::within_limit("messages_generation_node", 1.0 * most / made));
        EXPECT_TRUE(
            test::within_limit("messages_generation_leader", 1.0 * world.told() / (nodes * made)));
        expect_all_exit(world, Verdict::succeeded, 0);
    }
}

// A worker fails at 1.5 s. The entries of the ledger say how long each phase of the restart took.
// The sum must be the true time from the failure to the first progress, but for a way through the
// network: users read these numbers in the report.
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
            // The workers report for the first time 0.4 lease after their start, which is the upper
            // limit. 20 ms are the ways through the network.
            const Duration start = world.started(Generation{1}) - Time{1500ms};
            EXPECT_GE(lost, start - 20ms);
            EXPECT_LE(lost, start + 420ms);
            const auto& times = made[1].restart.times;
            const auto stopped = static_cast<std::size_t>(rendezvous::RestartPhase::stopped);
            EXPECT_GT(times[stopped].took, Duration{}) << "a worker takes up to 0.2 lease to end";
            EXPECT_FALSE(times[stopped].node.empty());
        });
}

// Rank 2 always fails. After the one restart of the budget the job ends, and every node exits with
// that worker's code, so that the batch script sees it wherever it looks. The crash loop is off:
// here the budget decides.
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

// Two more nodes are lost while the job stops for a failed worker, 10 and 20 ms after it. The next
// generation must not wait for them for ever, and must not count them in.
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

// All four nodes are needed, and one comes 3 s later. The others wait for it: the join timeout is 5
// s.
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

// A ddprun is killed and a new one comes on its host 0.2 s later, with another incarnation. It
// takes the old one's place in the next generation. The loss of a node uses up no restart.
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

// Rank 2 stands still after its second step, in the first generation only. Nothing fails, so only
// the missing progress shows it: the leader finds it, looks at the slowest ranks, and starts all
// again. The timeout of 2 s is five reports long.
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

// A hang in each generation ends the job with code 124, which tells a script that it was a hang.
// One node alone has no lease and must find it, too.
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

// Whatever runs on host 1 fails, as with a broken GPU. After the second time the spare gets its
// place, and the job succeeds. With blame switched off the same job uses up its restarts and fails.
TEST(Sim, ANodeThatFailsTwiceMakesRoomForASpare) {
    for (const bool blame : {true, false})
        for_seeds(
            [blame](auto seed) {
                WorldConfig config = calm(4, seed);
                config.limits.min_nodes = config.limits.max_nodes = 3;
                config.limits.crash_loop = 0;
                config.limits.blame = blame;
                config.consequences = 0;  // a late message would make one of them the first
                config.starts = {0ms, 10ms, 20ms, 700ms};  // host 3 comes last: the spare
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

// A user's SIGTERM reaches one node only. All nodes stop together and exit with 128 + 15.
TEST(Sim, AUsersSignalOnOneNodeStopsAllWithIt) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.faults = {fault(Fault::Kind::stop_asked, 1500ms, 2)};
            return config;
        },
        [](const World& world) { expect_all_exit(world, Verdict::user_signal, 128 + 15); });
}

// SIGUSR1 is the named signal: the job stops with work left (75) and is requeued once, after its
// last worker. A plain SIGTERM that comes meanwhile is a user's scancel, and takes the requeue
// back. The invariants check the rest.
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

// Slurm signals a worker 0.7 s before any ddprun hears of the stop: within the second for which
// such a death is not judged. The stop was the cause of the worker's death, and of the deaths that
// followed. So no worker has failed, and no second generation starts.
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

// A node that comes while the others train is taken in after a snapshot. This costs no restart.
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
