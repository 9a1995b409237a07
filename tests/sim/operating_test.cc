// What operators ask of whole jobs (PROTOCOL.md, rule 27): it is done once, it outlives its leader,
// and it leaves a job that can go on.
#include "tests/sim/stories.h"

namespace ddprun::sim {
namespace {

// Four nodes, of which two are enough, to which one thing happens at 1.5 s.
WorldConfig asked(Fault::Kind kind, std::uint64_t seed) {
    WorldConfig config = calm(4, seed);
    config.limits.min_nodes = 2;
    config.consequences = 0;
    config.faults = {fault(kind, 1500ms, 2)};
    return config;
}

// His program asks again, since the answer may have been lost. The generation that has followed
// goes on.
TEST(Operator, ARestartThatIsAskedForTwiceIsOne) {
    for (const Duration again : {20ms, 300ms, 1000ms})
        for_seeds(
            [=](auto seed) {
                WorldConfig config = asked(Fault::Kind::operator_restarts, seed);
                config.faults[0].lasts = again;
                return config;
            },
            [](const World& world) {
                const auto made = generations(world);
                ASSERT_EQ(made.size(), 2u);
                EXPECT_EQ(made[1].assignment.restarts, 0);
                EXPECT_EQ(made[1].assignment.members.size(), 4u);
                expect_all_exit(world, Verdict::succeeded, 0);
            });
}

// Workers report progress, so a node that could come in would be let in soon.
WorldConfig drained(std::uint64_t seed) {
    WorldConfig config = asked(Fault::Kind::operator_drains, seed);
    config.progress = true;
    return config;
}

bool has(const LedgerEntry& entry, const std::string& node) {
    return std::ranges::any_of(entry.assignment.members,
                               [&](const auto& member) { return member.node.name == node; });
}

// Its generation ends, and nobody waits for it: a member that is missing would cost 0.6 s.
TEST(Operator, ADrainedHostLeavesAtOnce) {
    for_seeds(drained, [](const World& world) {
        const auto made = generations(world);
        ASSERT_EQ(made.size(), 2u);
        EXPECT_FALSE(has(made[1], "n2"));
        EXPECT_LT(world.started(made[1].assignment.generation), Time{1500ms + 500ms});
        expect_all_exit(world, Verdict::succeeded, 0);
    });
}

// The ledger has it, so the next leader knows it, too.
TEST(Operator, ADrainedHostStaysOutWhoeverLeads) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = drained(seed);
            config.faults.push_back(fault(Fault::Kind::host_lost, 2500ms, 0));
            return config;
        },
        [](const World& world) {
            const auto made = generations(world);
            ASSERT_EQ(made.size(), 3u);
            EXPECT_EQ(made[2].assignment.members.size(), 2u);
            EXPECT_FALSE(has(made[2], "n2"));
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

TEST(Operator, ADrainThatWouldEndTheJobIsRefused) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = drained(seed);
            config.limits.min_nodes = 4;
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).size(), 1u);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// A worker fails, and while the next generation is being recorded nobody can say who is in it. Nor
// after a create that has failed: its entry may stand.
WorldConfig drained_between_two(std::uint64_t seed) {
    WorldConfig config = drained(seed);
    config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 1),
                     fault(Fault::Kind::ledger_stalls_here, 1510ms, 0, 300ms),
                     fault(Fault::Kind::operator_drains, 1700ms, 2, 400ms)};
    return config;
}

TEST(Operator, ADrainComesBeforeAnEntryOrAfterIt) {
    for_seeds(drained_between_two, [](const World& world) {
        EXPECT_FALSE(has(generations(world).back(), "n2"));
        expect_all_exit(world, Verdict::succeeded, 0);
    });
    for_seeds(
        [](auto seed) {
            WorldConfig config = drained_between_two(seed);
            config.lost_answers = 0.7;
            return config;
        },
        [](const World& world) { expect_all_exit(world, Verdict::succeeded, 0); }, 20);
}

// limits_of(2): 2 to 3 nodes. The generation goes on; the next one has them, whoever leads it.
WorldConfig limited(std::uint64_t seed) {
    WorldConfig config = asked(Fault::Kind::operator_sets_limits, seed);
    config.limits.min_nodes = 4;
    config.faults.push_back(fault(Fault::Kind::worker_fails, 2000ms, 1));
    return config;
}

TEST(Operator, LimitsHoldFromTheNextGenerationOn) {
    for_seeds(limited, [](const World& world) {
        const auto made = generations(world);
        ASSERT_EQ(made.size(), 2u);
        EXPECT_EQ(made[0].assignment.members.size(), 4u);
        EXPECT_EQ(made[1].assignment.members.size(), 3u);
        EXPECT_EQ(made[1].limits, limits_of(2));
        expect_all_exit(world, Verdict::succeeded, 0);
    });
}

// Two nodes are left after the second loss, which the command line would not allow.
TEST(Operator, LimitsHoldWhoeverLeads) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = limited(seed);
            config.faults.push_back(fault(Fault::Kind::host_lost, 3500ms, 0));
            config.faults.push_back(fault(Fault::Kind::host_lost, 3500ms, 1));
            return config;
        },
        [](const World& world) {
            const auto made = generations(world);
            ASSERT_GE(made.size(), 3u);
            EXPECT_EQ(made.back().assignment.members.size(), 2u);
            EXPECT_EQ(made.back().limits, limits_of(2));
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// The leader is lost before any entry has them. The command line would not allow the three nodes
// that are left.
TEST(Operator, LimitsThatNoEntryHasOutliveTheirLeader) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = asked(Fault::Kind::operator_sets_limits, seed);
            config.limits.min_nodes = 4;
            config.faults.push_back(fault(Fault::Kind::host_lost, 2500ms, 0));
            return config;
        },
        [](const World& world) {
            const auto made = generations(world);
            ASSERT_EQ(made.size(), 2u);
            EXPECT_EQ(made[1].assignment.members.size(), 3u);
            EXPECT_EQ(made[1].limits, limits_of(2));
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// limits_of(3): 2 to 4 nodes, 3 restarts. Two wait as spares.
TEST(Operator, ALargerMaxTakesSparesIn) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = asked(Fault::Kind::operator_sets_limits, seed);
            config.faults[0].host = 3;
            config.limits.max_nodes = 2;
            config.limits.join_interval = 500ms;
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).back().assignment.members.size(), 4u);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// MIN would be three (limits_of(4)), and two nodes are left. Then the failure would end the job.
TEST(Operator, MinIsRaisedOnlyToTheNodesThatAreHere) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = calm(5, seed);
            config.limits.min_nodes = 1;
            config.consequences = 0;
            for (const int host : {1, 2, 3})
                config.faults.push_back(fault(Fault::Kind::host_lost, 1500ms, host));
            config.faults.push_back(fault(Fault::Kind::operator_sets_limits, 4000ms, 4));
            config.faults.push_back(fault(Fault::Kind::worker_fails, 4200ms, 0));
            config.work = 5s;
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).back().assignment.members.size(), 2u);
            EXPECT_EQ(generations(world).back().limits, rendezvous::OperatorLimits{});
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// A worker fails, and limits come while the next generation is being recorded: before its entry or
// after it.
TEST(Operator, LimitsComeBeforeAnEntryOrAfterIt) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = limited(seed);
            config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 1),
                             fault(Fault::Kind::ledger_stalls_here, 1510ms, 0, 300ms),
                             fault(Fault::Kind::operator_sets_limits, 1700ms, 2, 400ms),
                             fault(Fault::Kind::worker_fails, 3000ms, 1)};
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).back().limits, limits_of(2));
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// They go on for a tenth of a lease, and are then stopped, long before their end.
TEST(Operator, AStopComesAfterTheSnapshot) {
    for_seeds([](auto seed) { return asked(Fault::Kind::operator_stops_later, seed); },
              [](const World& world) {
                  expect_all_exit(world, Verdict::user_signal, 128 + 15);
                  for (const auto& process : world.processes()) {
                      EXPECT_GT(process->exited_at, Time{1500ms + 100ms});
                      EXPECT_LT(process->exited_at, Time{1500ms + 1200ms});
                  }
              });
}

// A worker fails before the snapshot is written. The next generation is asked.
TEST(Operator, AStopAfterASnapshotOutlivesItsGeneration) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = asked(Fault::Kind::operator_stops_later, seed);
            config.faults.push_back(fault(Fault::Kind::worker_fails, 1550ms, 1));
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).size(), 2u);
            expect_all_exit(world, Verdict::user_signal, 128 + 15);
        });
}

// The connection of a node that has not heard of it ends; the Acks of its next one carry it. Nobody
// does it twice.
TEST(Operator, ASnapshotIsAskedForOnce) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = asked(Fault::Kind::operator_asks_snapshot, seed);
            config.faults[0].lasts = 20ms;
            config.faults.push_back(fault(Fault::Kind::connection_reset, 1500ms, 1));
            return config;
        },
        [](const World& world) {
            EXPECT_EQ(generations(world).size(), 1u);
            expect_all_exit(world, Verdict::succeeded, 0);
        });
}

// They do not work to their end, which would come at 3 s.
TEST(Operator, AStopReachesAllNodes) {
    for_seeds([](auto seed) { return asked(Fault::Kind::operator_stops, seed); },
              [](const World& world) {
                  expect_all_exit(world, Verdict::user_signal, 128 + 15);
                  for (const auto& process : world.processes())
                      EXPECT_LT(process->exited_at, Time{1500ms + 1s});
              });
}

}  // namespace
}  // namespace ddprun::sim
