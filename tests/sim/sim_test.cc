// Whole jobs in virtual time: many seeds against all invariants, named scenarios, and the proof
// that the invariants can fail. DDPRUN_SEED_FIRST and DDPRUN_SEEDS choose the seeds of the first
// test; default 1 and 1000.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/sim/describe.h"
#include "tests/sim/shrink.h"
#include "tests/sim/world.h"

namespace ddprun::sim {
namespace {

using namespace std::chrono_literals;
using rendezvous::LedgerEntry;
using rendezvous::Verdict;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string first_violation(const World& world) {
    return world.violations().empty() ? "" : world.violations().front();
}

// A calm job of `nodes`, all of which are needed: lease 1 s, join timeout 5 s, 3 s of work.
WorldConfig calm(int nodes, std::uint64_t seed = 1) {
    WorldConfig config;
    config.seed = seed;
    config.hosts = nodes;
    config.limits.min_nodes = config.limits.max_nodes = nodes;
    config.limits.max_restarts = 3;
    config.limits.times = {.lease = 1s, .join_timeout = 5s, .last_call = 500ms};
    config.lost_answers = 0;
    return config;
}

Fault fault(Fault::Kind kind, Duration at, int host, Duration lasts = {}) {
    return {kind, Time{at}, host, lasts};
}

std::vector<LedgerEntry> generations(const World& world) {
    std::vector<LedgerEntry> found;
    for (const LedgerEntry& entry : world.ledger().entries())
        if (entry.kind == LedgerEntry::Kind::generation) found.push_back(entry);
    return found;
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

void expect_all_exit(const World& world, Verdict verdict, int code) {
    for (const auto& process : world.processes()) {
        if (!world.hosts()[process->host].up) continue;
        ASSERT_TRUE(process->exit) << process->id.name;
        EXPECT_EQ(process->exit->verdict, verdict) << process->id.name;
        EXPECT_EQ(process->exit->code, code) << process->id.name;
    }
}

// The faults that a failing job cannot do without, for whoever looks into it.
std::string core_of(const WorldConfig& config) {
    const Shrunk shrunk = shrink(config);
    std::string text = "its core, found in " + std::to_string(shrunk.runs) + " runs, is " +
                       std::to_string(shrunk.config.faults.size()) + " of " +
                       std::to_string(config.faults.size()) + " faults: " + shrunk.violation + "\n";
    for (const Fault& each : shrunk.config.faults)
        text += "  at " + ddprun::to_text(each.at - Time{}) + ": " + to_text(each) + "\n";
    return text;
}

// Jobs in which much goes wrong: long work, few nodes needed, the network cut and slow.
WorldConfig hard_config(std::uint64_t seed) {
    WorldConfig config = random_config(seed + 100'000);
    Random random(seed);
    config.hosts = random.between(3, 5);
    config.starts.clear();
    config.slots.clear();
    config.script = nullptr;
    config.limits.max_nodes = config.hosts;
    config.limits.min_nodes = random.between(1, 2);
    config.limits.max_restarts = 50;
    config.limits.crash_loop = 0;
    config.limits.order.clear();
    config.work = 8s;
    config.faults = plan_faults(random, config.hosts, config.limits.times.lease, 6s);
    for (const Fault& more : plan_faults(random, config.hosts, config.limits.times.lease, 6s))
        config.faults.push_back(more);
    return config;
}

void hold_on_seeds(WorldConfig (*make)(std::uint64_t), std::uint64_t otherwise) {
    const std::uint64_t first = number_from("DDPRUN_SEED_FIRST", 1);
    const std::uint64_t count = number_from("DDPRUN_SEEDS", otherwise);
    int failures = 0;
    std::map<std::string, int> ends;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        World world(make(seed));
        world.run();
        const LedgerEntry* end = world.ledger().end();
        ++ends[end ? "verdict " + std::to_string(static_cast<int>(end->ending.verdict)) : "none"];
        if (world.violations().empty()) continue;
        ADD_FAILURE() << "seed " << seed << ": " << first_violation(world)
                      << "\nrepeat: DDPRUN_SEED_FIRST=" << seed
                      << " DDPRUN_SEEDS=1 build/tests/sim_test"
                      << (count == 1 || failures < 2
                              ? "\n" + core_of(make(seed)) + world.tail(count == 1 ? 4000 : 60)
                              : "");
        if (++failures == 20) break;
    }
    for (const auto& [end, times] : ends) std::cout << end << ": " << times << " jobs\n";
}

TEST(Sim, HoldsItsInvariantsOnManySeeds) { hold_on_seeds(random_config, 1000); }
TEST(Sim, HoldsItsInvariantsWhenMuchGoesWrong) { hold_on_seeds(hard_config, 600); }

TEST(Sim, SameSeedGivesTheSameTraceByteForByte) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        WorldConfig config = random_config(seed);
        config.keep_trace = true;
        World one(config), other(config);
        one.run();
        other.run();
        ASSERT_EQ(one.trace(), other.trace()) << "seed " << seed;
        ASSERT_EQ(one.trace_hash(), other.trace_hash());
    }
    World one(random_config(1)), other(random_config(2));
    one.run();
    other.run();
    EXPECT_NE(one.trace_hash(), other.trace_hash());
}

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
            EXPECT_EQ(end->ending.verdict, Verdict::succeeded);
        });
}

TEST(Sim, AStallOfHalfALeaseHarmsNobody) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.faults = {fault(Fault::Kind::host_paused, 1s, 2, 480ms),
                             fault(Fault::Kind::process_frozen, 2s, 0, 480ms)};
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).size(), 1u);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// An hour at the default times: 5 % of all packets are lost, each ddprun waits for its processor
// for up to a second again and again, and once a minute all of them do at once.
TEST(Sim, SlowIsNotDead) {
    WorldConfig config = calm(4);
    config.limits.times = {};
    config.work = 1h;
    config.packet_loss = 0.05;
    Random random(1);
    for (Duration at = 1s; at < 1h; at += 2s)
        for (int host = 0; host < config.hosts; ++host)
            if (at % 1min == 1s || random.chance(0.3))
                config.faults.push_back(
                    fault(Fault::Kind::process_frozen, at, host, random.span(10ms, 1s)));
    World world(config);
    world.run();
    EXPECT_EQ(generations(world).size(), 1u);
    expect_all_exit(world, Verdict::succeeded, 0);
}

TEST(Sim, AStalledLedgerEndsNoHealthyJob) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.faults = {fault(Fault::Kind::ledger_stalls, 1s, 0, 5s)};
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).size(), 1u);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

TEST(Sim, ALostNodeLeavesASmallerJob) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.limits.min_nodes = 2;
            config.consequences = 0;  // what fails because of it would count as a failure
            config.faults = {fault(Fault::Kind::host_lost, 1500ms, 3)};
            return config;
        },
        [](const World& world) {
            const auto made = generations(world);
            ASSERT_EQ(made.size(), 2u);
            EXPECT_EQ(made[1].assignment.members.size(), 3u);
            EXPECT_EQ(made[1].assignment.restarts, 0);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

TEST(Sim, TooFewNodesLeftEndAsUnavailable) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.faults = {fault(Fault::Kind::host_lost, 1500ms, 3)};
            return config;
        },
        [](const World& world) { expect_all_exit(world, Verdict::unavailable, 69); });
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
            EXPECT_EQ(end->ending.verdict, Verdict::succeeded);
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
                expect_all_exit(world, Verdict::worker_failed, rendezvous::kHungCode);
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

// Without a shared ledger the leader's node is the job's.
TEST(Sim, ALostLeaderWithoutASharedLedgerEndsTheOthersWithUnavailable) {
    for (const auto kind : {Fault::Kind::host_lost, Fault::Kind::process_killed})
        for_seeds(
            [kind](auto seed) {
                WorldConfig config = calm(4, seed);
                config.succession = false;
                config.faults = {fault(kind, 1500ms, 0)};
                return config;
            },
            [](const World& world) {
                for (const auto& process : world.processes()) {
                    if (process->host == 0) continue;
                    ASSERT_TRUE(process->exit);
                    EXPECT_EQ(process->exit->code, 69);
                    EXPECT_LT(process->exited_at, Time{1500ms + 3s + 5s});
                }
            });
}

// When the next generation runs on all its members after `from`, in leases; -1: none did.
double next_generation_after(const World& world, Duration from) {
    for (const LedgerEntry& entry : generations(world)) {
        const Time all = world.started(entry.assignment.generation);
        if (all != kNever && all > Time{from})
            return std::chrono::duration<double>(all - Time{from}) / 1s;
    }
    return -1;
}

struct Loss {
    Fault::Kind kind;
    int host;
    double median, longest;  // leases, until the next generation runs
};

class LeaderLoss : public testing::TestWithParam<Loss> {};

// A member or the leader is lost in one of four ways: the others go on, in how many leases.
TEST_P(LeaderLoss, TheOthersGoOn) {
    std::vector<double> took;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        WorldConfig config = calm(4, seed);
        config.limits.min_nodes = 3;
        config.limits.max_restarts = 9;
        config.work = 6s;
        config.consequences = 0;
        const Duration at = 1500ms + std::chrono::milliseconds(seed * 3);
        config.faults = {fault(GetParam().kind, at, GetParam().host)};
        World world(config);
        world.run();
        ASSERT_EQ(first_violation(world), "") << "seed " << seed << "\n" << world.tail(80);
        const LedgerEntry* end = world.ledger().end();
        ASSERT_TRUE(end) << "seed " << seed << "\n" << world.tail(80);
        ASSERT_EQ(end->ending.verdict, Verdict::succeeded) << "seed " << seed;
        const double leases = next_generation_after(world, at);
        ASSERT_GE(leases, 0) << "seed " << seed << "\n" << world.tail(80);
        took.push_back(leases);
    }
    std::sort(took.begin(), took.end());
    std::cout << to_string(GetParam().kind) << " on host " << GetParam().host
              << ": next generation after " << took[50] << " (median), " << took.back()
              << " leases at most\n";
    EXPECT_LE(took[50], GetParam().median);
    EXPECT_LE(took.back(), GetParam().longest);
}

INSTANTIATE_TEST_SUITE_P(Sim, LeaderLoss,
                         testing::Values(Loss{Fault::Kind::process_killed, 2, 0.25, 0.3},
                                         Loss{Fault::Kind::step_killed, 2, 0.3, 0.35},
                                         Loss{Fault::Kind::host_lost, 2, 1.0, 1.1},
                                         Loss{Fault::Kind::process_killed, 0, 0.25, 0.45},
                                         Loss{Fault::Kind::step_killed, 0, 0.35, 0.5},
                                         Loss{Fault::Kind::host_lost, 0, 1.65, 1.75}),
                         [](const auto& info) {
                             return std::string(to_string(info.param.kind)) + "_" +
                                    std::to_string(info.param.host);
                         });

// The leader is lost, and then the one that took over, while the others are still meeting.
TEST(Sim, TwoLeadersAreLostOneAfterTheOther) {
    for (const auto kind :
         {Fault::Kind::process_killed, Fault::Kind::step_killed, Fault::Kind::host_lost})
        for (const Duration apart : {50ms, 300ms, 1500ms, 2500ms})
            for_seeds(
                [=](auto seed) {
                    WorldConfig config = calm(5, seed);
                    config.limits.min_nodes = 3;
                    config.consequences = 0;
                    config.work = 6s;
                    config.faults = {fault(kind, 1500ms, 0), fault(kind, 1500ms + apart, 1)};
                    return config;
                },
                [](const World& world) {
                    const LedgerEntry* end = world.ledger().end();
                    ASSERT_TRUE(end);
                    EXPECT_EQ(end->ending.verdict, Verdict::succeeded);
                    EXPECT_EQ(generations(world).back().assignment.members.size(), 3u);
                    EXPECT_EQ(generations(world).back().assignment.restarts, 0);
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

TEST(Sim, ADeadKeeperCostsOneGeneration) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(4, seed);
            config.consequences = 0;
            config.faults = {fault(Fault::Kind::keeper_dies, 1500ms, 2)};
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).back().assignment.restarts, 0);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// ---- the invariants can fail

// The first seed at which the mutation is found; 0: at none of so many.
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

// Of much that goes wrong only what it takes is left, and it still goes wrong.
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

TEST_P(Mutations, AreFound) { EXPECT_GT(found_at(GetParam(), 600), 0); }

INSTANTIATE_TEST_SUITE_P(Sim, Mutations,
                         testing::Values(Mutation::keeper_ignores_deadlines,
                                         Mutation::kills_are_slow, Mutation::swept_too_early,
                                         Mutation::create_overwrites, Mutation::lost_is_won,
                                         Mutation::proposing_at_h, Mutation::deadline_from_arrival,
                                         Mutation::silent_members_count,
                                         Mutation::late_assigned_obeyed),
                         [](const auto& info) { return to_string(info.param); });

// How many of some seeds of a scenario, written for a rare mutation, find it.
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

// The new leader is the only other node, and its workers stop quickly.
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

// n0 leads and is a spare; n1, n2, n3 train, n4 and n5 wait.
WorldConfig led_by_a_spare(std::uint64_t seed) {
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

// The leader is lost and n1 takes over, but n3 is cut off before it has echoed; before that
// takeover is given up, n2 is cut off too, and n1 goes on with the spares.
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

// Who leads and is no member may be lost without a worker being stopped, if that is known at once.
TEST(Sim, ALostLeaderThatIsNoMemberIsSucceededWithoutAStop) {
    for (const auto kind : {Fault::Kind::process_killed, Fault::Kind::step_killed})
        for_seeds(
            [kind](auto seed) {
                WorldConfig config = led_by_a_spare(seed);
                config.faults = {fault(kind, 1500ms, 0)};
                return config;
            },
            [](const World& world) {
                EXPECT_EQ(generations(world).size(), 1u);
                const LedgerEntry* end = world.ledger().end();
                ASSERT_TRUE(end);
                EXPECT_EQ(end->ending.verdict, Verdict::succeeded);
                EXPECT_EQ(world.ledger().entries()[1].kind, LedgerEntry::Kind::takeover);
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

// A leader cut off from all, with MIN on both sides: one side trains at a time, and the job ends
// well.
TEST(Sim, ACutOffLeaderAndTheOthersNeverTrainAtOnce) {
    for (const auto kind :
         {Fault::Kind::cut_off, Fault::Kind::cut_from_others, Fault::Kind::cut_to_others,
          Fault::Kind::host_paused, Fault::Kind::process_frozen})
        for_seeds(
            [kind](auto seed) {
                WorldConfig config = calm(4, seed);
                config.limits.min_nodes = 1;
                config.consequences = 0;
                config.work = 6s;
                config.faults = {fault(kind, 1500ms, 0, 3s)};
                return config;
            },
            [](const World& world) {
                const LedgerEntry* end = world.ledger().end();
                ASSERT_TRUE(end);
                EXPECT_EQ(end->ending.verdict, Verdict::succeeded);
            });
}

// Hundreds of nodes, of which the leader and some others are lost.
TEST(Sim, ThreeHundredNodesSurviveTheirLeader) {
    WorldConfig config = calm(300, 1);
    config.limits.min_nodes = 290;
    config.limits.times = {.lease = 10s, .join_timeout = 60s, .last_call = 1s};
    config.work = 40s;
    config.consequences = 0;
    config.faults = {fault(Fault::Kind::host_lost, 12s, 0), fault(Fault::Kind::host_lost, 12s, 1),
                     fault(Fault::Kind::process_killed, 13s, 150)};
    World world(config);
    world.run();
    EXPECT_EQ(first_violation(world), "");
    const LedgerEntry* end = world.ledger().end();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->ending.verdict, Verdict::succeeded);
    EXPECT_EQ(generations(world).back().assignment.members.size(), 297u);
}

// Two racks of three, with the leader and all the first in the order: one of those that are named
// from the rest is left to lead.
TEST(Sim, SixtyNodesSurviveTheirFirstForty) {
    WorldConfig config = calm(60, 1);
    config.limits.min_nodes = 15;
    config.limits.times = {.lease = 10s, .join_timeout = 120s, .last_call = 1s};
    config.work = 40s;
    config.consequences = 0;
    for (int i = 0; i < 40; ++i) config.faults.push_back(fault(Fault::Kind::host_lost, 12s, i));
    World world(config);
    world.run();
    EXPECT_EQ(first_violation(world), "");
    const LedgerEntry* end = world.ledger().end();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->ending.verdict, Verdict::succeeded) << end->ending.sentence;
    EXPECT_EQ(generations(world).back().assignment.members.size(), 20u);
}

}  // namespace
}  // namespace ddprun::sim
