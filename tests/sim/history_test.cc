// Stories about what a job has been through: progress, failures, a stop, who has finished. The
// leader is lost right after it. Any other leader must decide the same, because the entry in the
// ledger is older than these facts (rule 16).
//
// Once, a new leader forgot a failure, called a stopped job a success, or waited for ever for a
// node that had finished.
#include "tests/sim/stories.h"

namespace ddprun::sim {
namespace {

using std::chrono::milliseconds;

// Four nodes with 6 s of work, of which three are enough. When a worker is gone, all its peers
// fail: so many failures arrive for one cause.
WorldConfig at_work(std::uint64_t seed) {
    WorldConfig config = calm(4, seed);
    config.limits.min_nodes = 3;
    config.work = 6s;
    config.consequences = 1;
    return config;
}

// What the newest generation counts as used up.
int restarts(const World& world) { return generations(world).back().assignment.restarts; }

// Looks at the recorded end only: a lost leader has no exit.
void expect_end(const World& world, Verdict verdict) {
    const LedgerEntry* end = world.ledger().end();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->end()->verdict, verdict) << end->end()->sentence;
}

// With --max-restarts=auto, a job whose workers have never met is not restarted: its program has a
// bug. That they have met, and that rank 0 has reported progress, is known on the leader's node
// only. This node is lost 0.1 s after a worker has failed, before it has decided about the failure.
WorldConfig progress_on_the_leaders_node(std::uint64_t seed) {
    WorldConfig config = at_work(seed);
    config.limits.max_restarts = rendezvous::kAutoRestarts;
    config.progress = config.only_rank_0_reports = true;
    config.script = [](Generation generation, int, int) {
        return Behaviour{3s, 0, generation == Generation{0}};
    };
    config.faults = {fault(Fault::Kind::worker_fails, 1500ms, 2),
                     fault(Fault::Kind::process_killed, 1600ms, 0)};
    return config;
}

// The next leader must know of the progress from Acks, and restart the job. Otherwise a healthy job
// ends after hours of work.
TEST(History, ProgressIsKnownToTheNextLeader) {
    for_seeds(progress_on_the_leaders_node, [](const World& world) {
        expect_end(world, Verdict::succeeded);
        EXPECT_EQ(restarts(world), 1);
    });
}

// The same job, with Acks that say nothing of the facts: the next leader takes it for a job that
// has never met. So the story above can fail.
TEST(History, IsLostWithTheLeaderWhereAcksSayNothingOfIt) {
    WorldConfig config = progress_on_the_leaders_node(1);
    config.mutation = Mutation::acks_forget;
    World world(config);
    world.run();
    expect_end(world, Verdict::worker_failed);
}

// Only the leader was asked to stop. It passes the stop on, and dies 2, 20 or 100 ms later, before
// the stop is complete. The job must still stop, and not train on. The leader is a spare, so its
// loss alone would stop no worker.
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

// A node is asked to stop while the next leader is being found. It must tell the next leader. A
// node that stops alone leaves the others training, and they would end with 0.
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
                        // 128 + SIGTERM, on all that have an exit.
                        const int code = process->exit ? process->exit->code : 143;
                        EXPECT_EQ(code, 143) << process->id.name;
                    }
                });
}

// Rank 2 finishes at 0.8 s, and its node waits for the others. Then the leader is lost. The next
// leader must know that this node has nothing left to run, or the job would wait for it for ever.
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

// A worker fails by itself, and the leader is lost 120 to 200 ms later, before it has written the
// next entry. The failure must still use up its restart. The workers ignore SIGTERM in generation
// 0, so the entry comes late enough.
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

// A node is lost, and all its peers fail within 0.3 of a lease. The failures often arrive before
// the loss is known. They must use up no restart: the program has done nothing wrong.
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

// Two losses: first a member, then the leader while it still handles the first one. The next leader
// must know the first loss, or it takes the failures after it for the program's own.
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

// The other side of the rule: a worker fails by itself, and a host is lost 0.2 s later. The host
// was heard after the failure, so it does not explain it. The failure uses up a restart, or a bad
// program would never end.
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
