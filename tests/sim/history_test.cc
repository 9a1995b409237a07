// What a job has been through, and a leader that is lost right after it: whoever leads decides the
// same.
#include "tests/sim/stories.h"

namespace ddprun::sim {
namespace {

using std::chrono::milliseconds;

// Four nodes of which three are enough, long at work; the peers of a worker that is gone fail.
WorldConfig at_work(std::uint64_t seed) {
    WorldConfig config = calm(4, seed);
    config.limits.min_nodes = 3;
    config.work = 6s;
    config.consequences = 1;
    return config;
}

int restarts(const World& world) { return generations(world).back().assignment.restarts; }

void expect_end(const World& world, Verdict verdict) {
    const LedgerEntry* end = world.ledger().end();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->end()->verdict, verdict) << end->end()->sentence;
}

// With --max-restarts=auto a job that has never made progress is not restarted. Only the worker on
// the leader's node reports any, and that node is lost before it has decided about a failure.
WorldConfig progress_on_the_leaders_node(std::uint64_t seed) {
    WorldConfig config = at_work(seed);
    config.limits.max_restarts = rendezvous::kAutoRestarts;
    config.progress = config.only_rank_0_reports = true;
    config.script = [](Generation generation, int, int) {
        return Behaviour{3s, 0, generation == Generation{0}};
    };
    config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 2),
                     fault(Fault::Kind::process_killed, 1700ms, 0)};
    return config;
}

TEST(History, ProgressIsKnownToTheNextLeader) {
    for_seeds(progress_on_the_leaders_node, [](const World& world) {
        expect_end(world, Verdict::succeeded);
        EXPECT_EQ(restarts(world), 1);
    });
}

TEST(History, IsLostWithTheLeaderWhereAcksSayNothingOfIt) {
    WorldConfig config = progress_on_the_leaders_node(1);
    config.mutation = Mutation::acks_forget;
    World world(config);
    world.run();
    expect_end(world, Verdict::worker_failed);
}

// A stop that only the leader was asked for, and that it has told the others.
TEST(History, AStopIsKnownToTheNextLeader) {
    for (const Duration after : {2ms, 20ms, 100ms})
        for_seeds(
            [after](auto seed) {
                WorldConfig config = led_by_a_spare(seed);
                config.faults = {fault(Fault::Kind::stop_asked, 1500ms, 0),
                                 fault(Fault::Kind::process_killed, 1500ms + after, 0)};
                return config;
            },
            [](const World& world) { expect_end(world, Verdict::user_signal); });
}

// … or that a node is asked for while the next leader is being found.
TEST(History, AStopAskedWhileNobodyLeadsIsToldToTheNextLeader) {
    for (const auto kind : {Fault::Kind::process_killed, Fault::Kind::step_killed})
        for (const Duration after : {1ms, 5ms, 20ms})
            for_seeds(
                [=](auto seed) {
                    WorldConfig config = at_work(seed);
                    config.faults = {fault(kind, 1500ms, 0),
                                     fault(Fault::Kind::stop_asked, 1500ms + after, 2)};
                    return config;
                },
                [](const World& world) {
                    expect_end(world, Verdict::user_signal);
                    for (const auto& process : world.processes()) {
                        const int code = process->exit ? process->exit->code : 143;
                        EXPECT_EQ(code, 143) << process->id.name;
                    }
                });
}

// A node whose workers have all succeeded waits for the others; the next leader counts it in.
TEST(History, WhoHasFinishedIsKnownToTheNextLeader) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = led_by_a_spare(seed);
            config.script = [](Generation, int, int rank) {
                return Behaviour{rank == 2 ? 800ms : 3s, 0, false};
            };
            config.faults = {fault(Fault::Kind::process_killed, 1500ms, 0)};
            return config;
        },
        [](const World& world) {
            expect_end(world, Verdict::succeeded);
            EXPECT_EQ(generations(world).size(), 1u);
        });
}

// A worker fails by itself, and then the leader is lost before it has written what follows.
TEST(History, AFailureIsKnownToTheNextLeader) {
    for (const Duration after : {120ms, 160ms, 200ms})
        for_seeds(
            [after](auto seed) {
                WorldConfig config = at_work(seed);
                config.script = [](Generation generation, int, int) {
                    return Behaviour{3s, 0, generation == Generation{0}};
                };
                config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 2),
                                 fault(Fault::Kind::process_killed, 1500ms + after, 0)};
                return config;
            },
            [](const World& world) {
                expect_end(world, Verdict::succeeded);
                EXPECT_EQ(restarts(world), 1);
            });
}

// What fails because a node is lost uses up no restart, whichever is known first.
TEST(History, ALossExplainsTheFailuresThatCameWithIt) {
    for (const auto kind :
         {Fault::Kind::process_killed, Fault::Kind::step_killed, Fault::Kind::host_lost})
        for (const int host : {0, 2})
            for_seeds(
                [=](auto seed) {
                    WorldConfig config = at_work(seed);
                    config.faults = {fault(kind, 1500ms, host)};
                    return config;
                },
                [](const World& world) {
                    expect_end(world, Verdict::succeeded);
                    EXPECT_EQ(restarts(world), 0);
                });
}

// The leader is lost while what another loss has done is still open.
TEST(History, ALossIsKnownToTheNextLeader) {
    for (const Duration after : {50ms, 200ms, 500ms, 900ms})
        for_seeds(
            [after](auto seed) {
                WorldConfig config = at_work(seed);
                config.hosts = config.limits.max_nodes = 5;
                config.faults = {fault(Fault::Kind::host_lost, 1500ms, 3),
                                 fault(Fault::Kind::process_killed, 1500ms + after, 0)};
                return config;
            },
            [](const World& world) {
                expect_end(world, Verdict::succeeded);
                EXPECT_EQ(restarts(world), 0);
            });
}

// A worker fails, its node and all others live on for a while; then one is lost.
TEST(History, ALossDoesNotExplainAFailureOfLongBefore) {
    for (const int host : {0, 3})
        for_seeds(
            [host](auto seed) {
                WorldConfig config = at_work(seed);
                config.script = [](Generation generation, int, int) {
                    return Behaviour{3s, 0, generation == Generation{0}};
                };
                config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 2),
                                 fault(Fault::Kind::host_lost, 1700ms, host)};
                return config;
            },
            [](const World& world) {
                expect_end(world, Verdict::succeeded);
                EXPECT_EQ(restarts(world), 1);
            });
}

}  // namespace
}  // namespace ddprun::sim
