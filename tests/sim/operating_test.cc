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
