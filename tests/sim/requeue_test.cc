// Slurm starts a job again while its first allocation may live: it has lost the way to a rack whose
// nodes still train. The two allocations share nothing but the ledger (PROTOCOL.md, rule 26). And
// two leaders of one allocation that do not know each other, who meet by the same entry.
#include "tests/sim/stories.h"

namespace ddprun::sim {
namespace {

// n0 to n2 train from 0 s on and need 20 s. m0 to m2 start at 2 s, with up to 0.1 s between them.
WorldConfig requeued(std::uint64_t seed) {
    WorldConfig config = calm(3, seed);
    config.limits.min_nodes = 2;
    config.limits.times.last_call = 0ms;
    config.work = 20s;
    config.consequences = 0;
    config.requeued_at = 2s;
    return config;
}

// When the first worker of the newer allocation started, kNever if none did.
Time second_began(const World& world) {
    for (const LedgerEntry& entry : generations(world))
        if (entry.requeue == 1) return world.started(entry.assignment.generation);
    return kNever;
}

void expect_success_of_the_newer(const World& world) {
    const LedgerEntry* end = world.ledger().end();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->end()->verdict, Verdict::succeeded);
    EXPECT_EQ(end->requeue, 1);
}

void expect_taken_over(const World& world) {
    ASSERT_NO_FATAL_FAILURE(expect_success_of_the_newer(world));
    for (const auto& process : world.processes()) {
        if (world.restart_count(process->host) > 0 || !process->exit) continue;
        EXPECT_EQ(process->exit->code, 75) << process->exit->sentence;
        EXPECT_NE(process->exit->sentence.find("in another allocation"), std::string::npos);
    }
    // Five seconds for the old one's last workers, three for the wait.
    EXPECT_LT(second_began(world), Time{2s + 100ms + 3s + 500ms});
    EXPECT_GE(second_began(world), Time{2s + 3s});
}

// The old allocation is well, and ends because a newer one has begun.
TEST(Requeue, AnAllocationThatTrainsEndsForANewerOne) { for_seeds(requeued, expect_taken_over); }

// Whatever happens to one node of the old allocation around the requeue, the two never train at
// once (an invariant of every job), and the new one goes on.
TEST(Requeue, TheOldLeaderIsLostOrStandsStill) {
    for (const auto kind :
         {Fault::Kind::process_killed, Fault::Kind::step_killed, Fault::Kind::host_lost,
          Fault::Kind::host_paused, Fault::Kind::process_frozen, Fault::Kind::cut_off})
        for (const Duration at : {1300ms, 1900ms, 2050ms, 2300ms, 3000ms})
            for (const Duration lasts : {200ms, 450ms, 900ms, 1800ms})
                for_seeds(
                    [=](auto seed) {
                        WorldConfig config = requeued(seed);
                        config.faults = {fault(kind, at, 0, lasts)};
                        return config;
                    },
                    expect_success_of_the_newer, 3);
}

// The new leader is lost while it waits. Its successor waits anew, since nothing tells it since
// when the old one could see the entry.
TEST(Requeue, ASuccessorInTheNewAllocationWaitsAnew) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = requeued(seed);
            config.faults = {fault(Fault::Kind::host_lost, 3s, 3)};
            return config;
        },
        [](const World& world) {
            ASSERT_TRUE(world.ledger().end());
            EXPECT_EQ(world.ledger().end()->end()->verdict, Verdict::succeeded);
            EXPECT_GE(second_began(world), Time{3s + 3s});
        });
}

// The old allocation has stopped and has written its end: the new one begins at once.
TEST(Requeue, ARecordedEndNeedsNoWait) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = requeued(seed);
            config.requeued_at = 4s;
            config.faults = {fault(Fault::Kind::stop_asked, 1s, 1, 1s)};
            return config;
        },
        [](const World& world) {
            ASSERT_TRUE(world.ledger().end());
            EXPECT_EQ(world.ledger().end()->end()->verdict, Verdict::succeeded);
            EXPECT_LT(second_began(world), Time{4s + 600ms});
        });
}

// A user stops the new allocation while it waits. The next one must wait, too, so no end stands in
// the ledger.
TEST(Requeue, AStopDuringTheWaitRecordsNoEnd) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = requeued(seed);
            config.faults = {fault(Fault::Kind::stop_asked, 3s, 4)};
            return config;
        },
        [](const World& world) {
            EXPECT_FALSE(world.ledger().end());
            EXPECT_EQ(second_began(world), kNever);
            for (const auto& process : world.processes()) {
                ASSERT_TRUE(process->exit);
                EXPECT_EQ(process->exit->code, world.restart_count(process->host) ? 143 : 75);
            }
        });
}

// n0 leads, and is lost when it has welcomed the other two, but has not told each of the other.
// Both lead then, and each would wait for the other until the join timeout, if the entry did not
// name the one that leads. Some of so many seeds meet that moment.
TEST(FirstLeader, Rule26f_TwoThatDoNotKnowEachOtherMeet) {
    int both = 0;
    for (std::uint64_t seed = 1; seed <= 700; ++seed) {
        WorldConfig config = calm(3, seed);
        config.limits.min_nodes = 2;
        config.starts = {0ms, 20ms, 20ms};
        config.faults = {fault(Fault::Kind::host_lost, 20ms + seed * 2us, 0)};
        World world(config);
        world.run();
        ASSERT_EQ(first_violation(world), "") << "seed " << seed << "\n" << world.tail(60);
        bool welcomed = true;
        for (const auto& process : world.processes())
            welcomed &= process->host == 0 || process->first_welcome <= Time{100ms};
        if (!welcomed) continue;
        ++both;
        ASSERT_TRUE(world.ledger().end()) << "seed " << seed << "\n" << world.tail(100);
        EXPECT_EQ(world.ledger().end()->end()->verdict, Verdict::succeeded) << "seed " << seed;
    }
    EXPECT_GT(both, 20);
}

// A job of one node, of which no other node could be told.
WorldConfig alone(std::uint64_t seed) {
    WorldConfig config = requeued(seed);
    config.hosts = config.limits.min_nodes = config.limits.max_nodes = 1;
    return config;
}

TEST(RequeueOfOneNode, TheOldOneEndsForTheNewOne) { for_seeds(alone, expect_taken_over); }

TEST(RequeueOfOneNode, TheOldOneIsLostOrStandsStill) {
    // A job of one node has no lease, so one that is frozen trains on (a limit that is named).
    for (const auto kind :
         {Fault::Kind::process_killed, Fault::Kind::step_killed, Fault::Kind::host_lost})
        for (const Duration at : {1300ms, 1900ms, 2050ms, 2300ms, 3000ms})
            for_seeds(
                [=](auto seed) {
                    WorldConfig config = alone(seed);
                    config.faults = {fault(kind, at, 0)};
                    return config;
                },
                expect_success_of_the_newer, 3);
}

TEST(RequeueOfOneNode, ARecordedEndNeedsNoWait) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = alone(seed);
            config.requeued_at = 4s;
            config.faults = {fault(Fault::Kind::stop_asked, 1s, 0, 1s)};
            return config;
        },
        [](const World& world) {
            ASSERT_TRUE(world.ledger().end());
            EXPECT_EQ(world.ledger().end()->end()->verdict, Verdict::succeeded);
            EXPECT_LT(second_began(world), Time{4s + 600ms});
        });
}

// Its ledger is written behind its start. Some folders open only when the newer allocation has
// begun, which was at 2 s.
WorldConfig written_behind(std::uint64_t seed) {
    WorldConfig config = alone(seed);
    config.folder_opens = seed % 6 * 500ms;
    return config;
}

TEST(RequeueWrittenBehind, TheOldOneEndsForTheNewOne) {
    for_seeds(written_behind, expect_taken_over);
}

TEST(RequeueWrittenBehind, TheOldOneIsLost) {
    for (const auto kind :
         {Fault::Kind::process_killed, Fault::Kind::step_killed, Fault::Kind::host_lost})
        for (const Duration at : {100ms, 1300ms, 1900ms, 2050ms, 2300ms, 3000ms})
            for_seeds(
                [=](auto seed) {
                    WorldConfig config = written_behind(seed);
                    config.faults = {fault(kind, at, 0)};
                    return config;
                },
                expect_success_of_the_newer, 6);
}

// A worker fails while its ddprun stands still, and the newer allocation begins. The old one starts
// nothing when it goes on.
WorldConfig fails_while_frozen(std::uint64_t seed) {
    WorldConfig config = written_behind(seed);
    config.faults = {fault(Fault::Kind::process_frozen, 1800ms, 0, 2500ms + seed % 7 * 200ms),
                     fault(Fault::Kind::worker_fails, 1900ms, 0)};
    return config;
}

TEST(RequeueWrittenBehind, ARestartLosesToTheNewOne) {
    for_seeds(fails_while_frozen, expect_success_of_the_newer, 42);
}

TEST(RequeueWrittenBehind, ARecordedEndNeedsNoWait) {
    for_seeds(
        [](auto seed) {
            WorldConfig config = written_behind(seed);
            config.requeued_at = 4s;
            config.faults = {fault(Fault::Kind::stop_asked, 1s, 0, 1s)};
            return config;
        },
        [](const World& world) {
            ASSERT_NO_FATAL_FAILURE(expect_success_of_the_newer(world));
            EXPECT_LT(second_began(world), Time{4s + 600ms});
        });
}

int requeues_in(Mutation mutation, WorldConfig (*story)(std::uint64_t) = requeued) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        WorldConfig config = story(seed);
        config.mutation = mutation;
        World world(config);
        world.run();
        found += !world.violations().empty();
    }
    return found;
}

// The wait alone protects nothing, nor does the look alone; and a look that a cache answers is
// none.
TEST(RequeueMutation, EachHalfOfTheRuleIsNeeded) {
    EXPECT_EQ(requeues_in(Mutation::none), 0);
    EXPECT_GT(requeues_in(Mutation::requeue_is_proof), 0);
    EXPECT_GT(requeues_in(Mutation::leaders_never_look), 0);
    EXPECT_GT(requeues_in(Mutation::looks_are_old), 0);
}

TEST(RequeueMutation, AJobOfOneNodeNeedsThemToo) {
    EXPECT_EQ(requeues_in(Mutation::none, alone), 0);
    EXPECT_GT(requeues_in(Mutation::requeue_is_proof, alone), 0);
    EXPECT_GT(requeues_in(Mutation::leaders_never_look, alone), 0);
    EXPECT_GT(requeues_in(Mutation::looks_are_old, alone), 0);
}

TEST(RequeueMutation, SoDoesOneThatIsWrittenBehind) {
    EXPECT_EQ(requeues_in(Mutation::none, written_behind), 0);
    EXPECT_GT(requeues_in(Mutation::requeue_is_proof, written_behind), 0);
    EXPECT_GT(requeues_in(Mutation::leaders_never_look, written_behind), 0);
    EXPECT_GT(requeues_in(Mutation::looks_are_old, written_behind), 0);
}

}  // namespace
}  // namespace ddprun::sim
