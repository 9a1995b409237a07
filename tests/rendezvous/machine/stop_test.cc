// The rendezvous machine's part of an agreed stop (PROTOCOL.md, rule 23): what the nodes get, when
// the job goes back into Slurm's queue, and how deaths by Slurm's signals are judged. Scripts of
// two nodes.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

// A stop by --requeue-signal=USR1: signal 10, and the job goes on from the queue.
const StopAsked kNamed{10, "signal 10", StopCause::named_signal, {}, true};

// All workers of both nodes write their snapshot and exit; then both vow.
void both_stop(Script& s, double now) {
    s.beat(now, 1);
    s.beat(now, 2);
    s.completes(now, 1, 0);
    s.completes(now, 2, 0);
    s.vows(now + 0.1, 1, 0);
    s.vows(now + 0.1, 2, 0);
}

// First the end is recorded, then the job is requeued, and only then the nodes hear the end. In the
// other order a node could leave first, srun would end the step, and nobody would be left to
// requeue the job.
TEST(Stop, RequeuesOnceBeforeAnybodyLeaves) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.come(2, 1, kNamed), Contains("2: Stop by signal 10"));
    both_stop(s, 3);
    EXPECT_EQ(s.creating().end()->code, 75);
    EXPECT_TRUE(s.creating().end()->requeue);
    EXPECT_THAT(s.created(3.2), ElementsAre("requeue"));
    EXPECT_THAT(s.tick(3.3), IsEmpty());
    // Slurm signals all workers of a job that is requeued. That must not withdraw the requeue.
    EXPECT_THAT(s.come(3.3, 2, StopAsked{15, "signal 15"}), IsEmpty()) << "it is Slurm's, of that";
    EXPECT_THAT(s.step(3.4, Requeued{}), ElementsAre(HasSubstr("ended"), "1: Finished 75",
                                                     "2: Finished 75", "closed with 75"));
}

// The user cancels the job with scancel while the last snapshot is being written. The job must then
// not come back from the queue.
TEST(Stop, Rule23b_APlainSignalTakesTheRequeueBack) {
    Script s(limits(2, 2));
    s.both_run();
    s.come(2, 1, kNamed);
    EXPECT_THAT(s.come(2.5, 2, kNamed), IsEmpty()) << "the same of another node";
    EXPECT_THAT(s.come(2.5, 2, StopAsked{15, "signal 15", StopCause::signal, {}, true}), IsEmpty())
        << "--requeue=always";
    EXPECT_THAT(s.come(2.6, 2, StopAsked{15, "signal 15"}),
                ElementsAre(HasSubstr("the job is not requeued")));
    both_stop(s, 3);
    EXPECT_EQ(s.creating().end()->code, 75);
    EXPECT_FALSE(s.creating().end()->requeue);
    EXPECT_THAT(s.created(3.2), Not(Contains("requeue")));
}

// The last moment: the end is on its way to the ledger.
TEST(Stop, APlainSignalWhileTheEndIsBeingRecordedTakesItBackToo) {
    Script s(limits(2, 2));
    s.both_run();
    s.come(2, 1, kNamed);
    both_stop(s, 3);
    s.come(3.15, 2, StopAsked{15, "signal 15"});
    EXPECT_THAT(s.created(3.2), Contains("closed with 75"));
}

// Another leader has recorded the end, and requeues the job itself. Two requeues would be one too
// many.
TEST(Stop, NobodyRequeuesByAnothersEnd) {
    Script s(limits(2, 2));
    s.both_run();
    s.come(2, 1, kNamed);
    both_stop(s, 3);
    LedgerEntry theirs = s.creating();
    theirs.leader = node("other");
    const Lines lines = s.step(3.2, LedgerCreated{LedgerCreated::Outcome::lost, theirs, {}});
    EXPECT_THAT(lines, Contains("closed with 75"));
    EXPECT_THAT(lines, Not(Contains("requeue")));
}

// b was disconnected when the others got the Stop. It gets its own when it comes back; otherwise
// its workers would train on, and the snapshot would lack their ranks.
TEST(Stop, TellsLateComersWhatIsLeft) {
    Script s(limits(2, 2));
    s.both_run();
    StopAsked limit = kNamed;
    // As before a time limit.
    limit.left = sec(60);
    s.come(2, 1, limit);
    s.step(2.1, ConnectionLost{Session{2}});
    EXPECT_THAT(s.join(4, 3, node("b")), Contains("3: Stop by signal 10"));
}

// Slurm has started a requeued job again (SLURM_RESTART_COUNT 1) and the ledger ends with a stop.
// The job goes on with generation 3. After a failed job it does not.
TEST(Stop, TheNextAllocationGoesOn) {
    for (const Verdict verdict :
         {Verdict::work_left, Verdict::user_signal, Verdict::worker_failed}) {
        MachineConfig config = Script::config(limits(2, 2));
        config.requeue = 1;
        Machine machine(config, at(0));
        machine.step(at(0), Lead{{node("leader"), "leader", 1}});
        LedgerEntry end;
        end.number = EntryNumber{4};
        end.act = EndsJob{ending(verdict, 1, "stopped")};
        end.assignment.generation = Generation{2};
        machine.step(at(0), LedgerRead{{end}});
        const bool goes_on = verdict != Verdict::worker_failed;
        EXPECT_EQ(machine.snapshot().phase, goes_on ? Phase::gathering : Phase::closed);
        EXPECT_EQ(machine.snapshot().newest, Generation{2});
    }
}

// Slurm without control groups signals workers and ddprun in any order, here SIGHUP to a worker
// first. So such a death is judged only after 1 s. If a stop comes in that time, it was the cause,
// and the job ends with its code. Else the death was a failure.
TEST(Stop, Rule23e_OverridesTheDeathsThatItHasCaused) {
    MachineConfig config = Script::config(limits(2, 2));
    config.in_slurm = true;
    for (const bool stopped : {true, false}) {
        Script s(config);
        s.both_run();
        s.fails(2, 1, 0, killed(0, 1));
        s.vows(2.1, 1, 0);
        EXPECT_THAT(s.vows(2.2, 2, 0), Not(Contains(HasSubstr("create")))) << "not judged yet";
        if (stopped) s.come(2.5, 2, StopAsked{15, "signal 15"});
        s.beat(3.05, 1);
        s.beat(3.05, 2);
        EXPECT_TRUE(s.creating().end());
        EXPECT_EQ(s.creating().end()->code, stopped ? 128 + 15 : 128 + 1);
    }
}

}  // namespace
