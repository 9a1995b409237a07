// Whether a worker stands still, from samples taken once a second. Pure.
#include "diagnosis/standstill/still_worker.h"

#include <gmock/gmock.h>

#include <functional>

#include "diagnosis/standstill/still_kinds.h"
#include "tests/support/builders.h"

namespace ddprun::agent {
namespace {

using namespace ddprun::test;
using rendezvous::Doing;
using rendezvous::Still;
using testing::ElementsAre;
using testing::IsEmpty;

// In a collective, the main thread waits for it.
WorkerSample inside(std::uint64_t sent = 100) {
    return {
        .is_known = true, .state = 'S', .waiting = WaitingIn::anything, .sent = sent, .pending = 1};
}
WorkerSample outside(WaitingIn waiting = WaitingIn::anything, char state = 'S',
                     std::uint64_t cpu = 0, std::uint64_t moved = 100) {
    return {.is_known = true, .state = state, .waiting = waiting, .cpu = cpu, .moved = moved};
}

TEST(StillWorker, StandsStillInACollectiveInWhichNothingIsSent) {
    StillWorker worker;
    for (int i = 0; i <= 10; ++i) worker.sampled(at(i), inside());
    EXPECT_EQ(worker.lasted(at(10)), sec(10));
    EXPECT_EQ(worker.doing(), Doing::in_collective);
    worker.sampled(at(11), inside(200));
    EXPECT_EQ(worker.lasted(at(11)), sec(0)) << "it has sent something";
}

// Whether its connections are looked at is decided by this, also while it is stopped: going on, it
// would be in the same collective, and no later look would be due for it.
TEST(StillWorker, IsInACollectiveWhateverItsMainThreadDoes) {
    StillWorker worker;
    EXPECT_FALSE(worker.in_collective());
    WorkerSample stopped = inside();
    stopped.state = 'T';
    for (int i = 0; i <= 1; ++i) worker.sampled(at(i), stopped);
    EXPECT_EQ(worker.doing(), Doing::is_stopped);
    EXPECT_TRUE(worker.in_collective());
    worker.sampled(at(2), outside());
    EXPECT_FALSE(worker.in_collective());
}

// A worker that trains is sometimes inside and sometimes not.
TEST(StillWorker, MovesWhenItGoesInOrOut) {
    StillWorker worker;
    for (int i = 0; i <= 10; ++i) worker.sampled(at(i), i % 2 ? inside() : outside());
    EXPECT_EQ(worker.lasted(at(10)), sec(0));
}

// From outside, one that NCCL lets wait is in no collective. NCCL knows since when it waits.
TEST(StillWorker, WaitsInACollectiveWhereNcclSaysSo) {
    StillWorker worker;
    for (int i = 0; i <= 20; ++i)
        worker.sampled(at(i), outside(WaitingIn::anything, 'R', 100ULL * static_cast<unsigned>(i)));
    EXPECT_EQ(worker.doing(), Doing::computes);
    worker.told_by_nccl({NcclPart::waits, at(16), sec(9)});
    EXPECT_EQ(worker.doing(), Doing::in_collective);
    EXPECT_FALSE(worker.in_collective()) << "its connections tell nothing";
    EXPECT_EQ(worker.lasted(at(20)), sec(4));
    EXPECT_EQ(worker.usual(), sec(9));
    worker.told_by_nccl({NcclPart::is_awaited, at(16)});
    EXPECT_EQ(worker.doing(), Doing::computes);
    worker.sampled(at(21), inside());
    EXPECT_EQ(worker.lasted(at(23)), sec(2)) << "it was in none before";
}

// Those that have made different calls are told apart, wherever the program is.
TEST(StillKinds, OfDifferentCallsOfNccl) {
    std::vector<StillWorker> workers(3);
    for (int i = 0; i <= 20; ++i)
        for (StillWorker& worker : workers) {
            worker.sampled(at(i), outside());
            worker.found_at(at(i), {.place = 7, .stack = 1});
        }
    for (StillWorker& worker : workers)
        worker.told_by_nccl({NcclPart::waits, at(2), sec(0), "AllReduce"});
    workers[1].told_by_nccl({NcclPart::waits, at(2), sec(0), "AllGather"});
    const auto kinds = still_kinds(at(20), workers);
    ASSERT_EQ(kinds.size(), 2u);
    EXPECT_EQ(kinds[0].workers, 0b101u);
    EXPECT_EQ(kinds[0].doing, Doing::in_collective);
    EXPECT_EQ(kinds[0].lasted, sec(18));
}

// Outside, it may write a log or a file: the others wait for it all the same.
TEST(StillWorker, StandsStillOutsideThoughItWrites) {
    StillWorker worker;
    for (unsigned i = 0; i <= 10; ++i)
        worker.sampled(at(i), outside(WaitingIn::anything, 'S', 0, i));
    EXPECT_EQ(worker.lasted(at(10)), sec(10));
}

// It stands still from its start on, and comes to init_process_group() after 16 s, which is seen at
// 20 s. Where the first look finds it there, it has come after it took CPU time.
TEST(StillWorker, HasMetSinceItHasCome) {
    StillWorker worker;
    for (int i = 0; i <= 15; ++i) worker.sampled(at(i), outside(WaitingIn::timer));
    worker.found_at(at(15), {.place = 1, .stack = 1});
    EXPECT_EQ(worker.met_for(at(15)), sec(0));
    worker.found_at(at(20), {.place = 2, .meets = true, .stack = 2});
    worker.found_at(at(25), {.place = 2, .meets = true, .stack = 2});
    EXPECT_EQ(worker.met_for(at(25)), sec(5));
    EXPECT_EQ(worker.lasted(at(25)), sec(25));
    EXPECT_EQ(still_kinds(at(25), {worker}).front().lasted, sec(5));
    worker.found_at(at(26), {.place = 1, .stack = 1});
    EXPECT_EQ(worker.met_for(at(26)), sec(0));

    StillWorker imports;
    for (unsigned i = 0; i <= 3; ++i)
        imports.sampled(at(i), outside(WaitingIn::anything, 'R', 90 * i));
    for (int i = 4; i <= 6; ++i) imports.sampled(at(i), outside(WaitingIn::anything, 'S', 270));
    imports.found_at(at(6), {.place = 2, .meets = true, .stack = 2});
    EXPECT_EQ(imports.met_for(at(6)), sec(3));
}

// Two ranks of a node wait for a third of another one: they wait since the first has come.
TEST(StillKinds, MeetSinceTheFirstHasCome) {
    std::vector<StillWorker> workers(2);
    for (std::size_t i = 0; i < 2; ++i) {
        for (int t = 0; t <= 10; ++t) workers[i].sampled(at(t), outside());
        workers[i].found_at(at(1), {.place = 1, .stack = 1});
        workers[i].found_at(at(i == 0 ? 2 : 9), {.place = 2, .meets = true, .stack = 2});
    }
    const std::vector<Still> kinds = still_kinds(at(10), workers);
    ASSERT_EQ(kinds.size(), 1u);
    EXPECT_EQ(kinds.front().lasted, sec(8));
}

TEST(StillWorker, TellsWhatItDoesOutside) {
    const auto doing = [](const WorkerSample& sample, int times = 2) {
        StillWorker worker;
        for (int i = 0; i < times; ++i) worker.sampled(at(i), sample);
        return worker.doing();
    };
    EXPECT_EQ(doing(outside(WaitingIn::timer)), Doing::sleeps);
    EXPECT_EQ(doing(outside(WaitingIn::reading)), Doing::reads);
    EXPECT_EQ(doing(outside(WaitingIn::writing)), Doing::writes);
    EXPECT_EQ(doing(outside(WaitingIn::child)), Doing::waits_for_child);
    EXPECT_EQ(doing(outside(WaitingIn::anything)), Doing::waits);
    EXPECT_EQ(doing(outside(WaitingIn::anything, 'R')), Doing::computes);
    EXPECT_EQ(doing(outside(WaitingIn::anything, 'T')), Doing::is_stopped);
    // Waiting for a disk once is nothing.
    EXPECT_EQ(doing(outside(WaitingIn::anything, 'D')), Doing::waits);
    EXPECT_EQ(doing(outside(WaitingIn::anything, 'D'), 4), Doing::hangs_in_kernel);
    EXPECT_EQ(doing({.is_known = true, .has_ended = true}), Doing::has_ended);
    // The main thread waits for the interpreter's lock, and another thread computes.
    StillWorker worker;
    for (unsigned i = 0; i <= 3; ++i)
        worker.sampled(at(i), outside(WaitingIn::anything, 'S', 90 * i));
    EXPECT_EQ(worker.doing(), Doing::computes);
    // In init_process_group() only the functions show it.
    worker.found_at(at(10), {.place = 1, .meets = true});
    EXPECT_EQ(worker.doing(), Doing::meets);
}

// It has met the others, trains, and stands still in a collective later on. Where it was then does
// not count.
TEST(StillWorker, ForgetsItsPlaceWhenItMoves) {
    StillWorker worker;
    for (int i = 0; i <= 10; ++i) worker.sampled(at(i), outside());
    worker.found_at(at(10), {.place = 1, .meets = true});
    EXPECT_EQ(worker.doing(), Doing::meets);
    worker.sampled(at(11), inside());
    EXPECT_EQ(worker.doing(), Doing::in_collective);
    EXPECT_EQ(worker.place(), 0u);
}

TEST(StillWorker, DoesNotStandStillWhereItCannotBeRead) {
    StillWorker worker;
    for (int i = 0; i <= 10; ++i) worker.sampled(at(i), {});
    EXPECT_EQ(worker.lasted(at(10)), sec(0));
}

// A thread of its own writes a log each second, in every rank, whatever they wait for.
TEST(StillWorker, StandsStillThoughAnotherThreadWrites) {
    StillWorker worker;
    for (unsigned i = 0; i <= 10; ++i) {
        WorkerSample sample = inside();
        sample.moved = i;
        worker.sampled(at(i), sample);
    }
    EXPECT_EQ(worker.lasted(at(10)), sec(10));
}

// Samples each second, and its functions each fifth.
Duration unmoved(const std::function<WorkerSample(unsigned)>& sample,
                 const std::function<ProgramPlace(unsigned)>& place) {
    StillWorker worker;
    for (unsigned i = 0; i <= 60; ++i) {
        worker.sampled(at(i), sample(i));
        if (i % 5 == 0) worker.found_at(at(i), place(i));
    }
    EXPECT_EQ(worker.lasted(at(60)), sec(60));
    return worker.unmoved(at(60));
}

// One that sleeps in one function for ever, one that evaluates and one that reads are all outside.
// What distinguishes them is whether anything moves.
TEST(StillWorker, KnowsWhetherAnythingMovesInIt) {
    const auto sleeps = [](unsigned) { return outside(WaitingIn::timer); };
    const auto there = [](unsigned) { return ProgramPlace{.place = 1, .stack = 1}; };
    EXPECT_EQ(unmoved(sleeps, there), sec(60));
    EXPECT_EQ(unmoved([](unsigned i) { return outside(WaitingIn::anything, 'S', i); }, there),
              sec(60))
        << "a thread that looks for work takes a hundredth of a CPU";
    EXPECT_EQ(unmoved([](unsigned i) { return outside(WaitingIn::anything, 'R', 10 * i); }, there),
              sec(0));
    EXPECT_EQ(
        unmoved([](unsigned i) { return outside(WaitingIn::reading, 'S', 0, i / 30); }, there),
        sec(0));
    EXPECT_EQ(unmoved(sleeps, [](unsigned i) { return ProgramPlace{.place = 1, .stack = i}; }),
              sec(0));
    // An evaluation in a child.
    EXPECT_EQ(unmoved(sleeps,
                      [](unsigned i) {
                          return ProgramPlace{.place = 1, .stack = 1, .children_cpu = 100 * i};
                      }),
              sec(0));
    EXPECT_EQ(unmoved(sleeps,
                      [](unsigned i) {
                          return ProgramPlace{
                              .place = 1, .stack = 1, .children_cpu = i < 40 ? 100u : 0};
                      }),
              sec(20))
        << "the child has ended";
    EXPECT_EQ(unmoved(sleeps, [](unsigned) { return ProgramPlace{}; }), sec(0))
        << "its functions are not known";
}

// It moves each third second: ten of these pauses must pass before a standstill is told.
TEST(StillWorker, LearnsItsRhythm) {
    StillWorker worker;
    for (unsigned i = 0; i <= 60; ++i) worker.sampled(at(i), inside(i / 3));
    EXPECT_GT(worker.usual(), sec(2.5));
    EXPECT_LE(worker.usual(), sec(3));
}

// It imports for 30 s, and meets the others. A job that hangs soon after that is told soon, too.
TEST(StillWorker, ItsStartIsNoPauseOfItsRhythm) {
    StillWorker worker;
    for (unsigned i = 0; i <= 30; ++i) worker.sampled(at(i), outside(WaitingIn::reading));
    worker.sampled(at(31), inside(1));
    EXPECT_EQ(worker.usual(), sec(0));
    worker.sampled(at(32), inside(2));
    EXPECT_EQ(worker.usual(), sec(1));
}

// A first step of 20 s, as one that compiles, is soon forgotten. A pause between short steps counts
// less.
TEST(StillWorker, ShortPausesCountMoreThanLongOnes) {
    StillWorker worker;
    worker.sampled(at(0), inside(0));
    worker.sampled(at(1), inside(1));
    for (unsigned i = 2; i <= 21; ++i) worker.sampled(at(i), inside(i < 21 ? 1 : 2));
    EXPECT_EQ(worker.usual(), sec(20));
    for (unsigned i = 22; i <= 26; ++i) worker.sampled(at(i), inside(i));
    EXPECT_LE(worker.usual(), sec(2));
    for (unsigned i = 27; i <= 46; ++i) worker.sampled(at(i), inside(i < 46 ? 26 : 46));
    EXPECT_LE(worker.usual(), sec(6));
}

// Three wait in the same line, one sleeps elsewhere. A Beat has one entry for each kind, with the
// shortest time and the slowest rhythm.
TEST(StillKinds, PutTogetherWhatIsAlike) {
    std::vector<StillWorker> workers(4);
    for (int i = 0; i <= 20; ++i)
        for (std::size_t k = 0; k < 4; ++k) {
            if (i < static_cast<int>(k)) continue;
            workers[k].sampled(at(i), k == 2 ? outside(WaitingIn::timer) : inside());
            workers[k].found_at(at(i), {.place = k == 2 ? 8U : 7U});
        }
    EXPECT_THAT(still_kinds(at(20), workers),
                ElementsAre(Still{0b1011, Doing::in_collective, sec(17), sec(0), 7},
                            Still{0b0100, Doing::sleeps, sec(18), sec(0), 8}));
    workers[3].sampled(at(21), inside(101));
    EXPECT_THAT(still_kinds(at(21), workers), IsEmpty()) << "one moves";
}

// What connections tell counts for one in a collective, and what moves, for one outside.
TEST(StillKinds, TellWhatIsWorthIt) {
    std::vector<StillWorker> workers(2);
    for (int i = 0; i <= 20; ++i)
        for (std::size_t k = 0; k < 2; ++k) {
            workers[k].sampled(at(i), k == 0 ? inside() : outside());
            workers[k].found_at(at(i), {.place = 1, .stack = 1, .lost = {3, 4}});
        }
    EXPECT_THAT(still_kinds(at(20), workers),
                ElementsAre(Still{0b01, Doing::in_collective, sec(20), sec(0), 1, sec(0), 3, 4},
                            Still{0b10, Doing::waits, sec(20), sec(0), 1, sec(20)}));
}

TEST(StillKinds, AreNoneWhereThereAreTooMany) {
    std::vector<StillWorker> workers(5);
    for (int i = 0; i <= 20; ++i)
        for (std::size_t k = 0; k < 5; ++k) {
            workers[k].sampled(at(i), inside());
            workers[k].found_at(at(i), {.place = static_cast<std::uint32_t>(k)});
        }
    EXPECT_THAT(still_kinds(at(20), workers), IsEmpty());
    workers.pop_back();
    EXPECT_EQ(still_kinds(at(20), workers).size(), 4u);
    EXPECT_THAT(still_kinds(at(20), std::vector<StillWorker>(65, workers[0])), IsEmpty());
}

// The workers that live after one has died.
TEST(StillWorker, AllThatLiveAreInCollectives) {
    std::vector<StillWorker> workers(3);
    const auto look = [&workers](int second, const WorkerSample& first, const WorkerSample& other) {
        workers[0].sampled(at(second), first);
        workers[1].sampled(at(second), other);
        workers[2].sampled(at(second), {.is_known = true, .has_ended = true});
        return all_in_collectives(at(second), workers);
    };
    EXPECT_FALSE(look(0, inside(), outside())) << "seen for the first time";
    EXPECT_FALSE(look(1, inside(), inside()));
    EXPECT_TRUE(look(2, inside(), inside()));
    EXPECT_FALSE(look(3, inside(), inside(200))) << "it sends";
    EXPECT_TRUE(look(4, inside(), inside(200)));
    WorkerSample saves = inside(200);
    saves.moved = 1 << 20;
    EXPECT_FALSE(look(5, inside(), saves)) << "it writes a snapshot beside a collective";
    EXPECT_FALSE(look(6, inside(), outside()));
    const WorkerSample ended{.is_known = true, .has_ended = true};
    EXPECT_FALSE(look(7, ended, ended)) << "nobody lives";
}

}  // namespace
}  // namespace ddprun::agent
