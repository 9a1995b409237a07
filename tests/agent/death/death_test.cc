// Judges worker deaths from made-up facts: when the worker died, whether the failure is its own,
// and what the report says. The function is pure, and no process runs.
#include "agent/death/death.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::agent;
using namespace ddprun::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

// Rank 3 on gpu01, which ran from second 10 to second 20. Everything else stays empty: no error
// file, no stop, no output.
DeathFacts facts(ExitStatus status) {
    DeathFacts facts;
    facts.status = status;
    facts.rank = 3, facts.local_rank = 1, facts.pid = 4711, facts.node = "gpu01";
    facts.started = at(10), facts.reaped = at(20);
    return facts;
}

}  // namespace

// Without an error file, only the keeper knows the time of the death. ("code 7" has no usual
// meaning, so the sentence ends without a guess.)
TEST(Death, IsWhenTheKeeperSawIt) {
    const Death death = judge_death(facts({.code = 7}));
    EXPECT_EQ(death.at, at(20));
    EXPECT_EQ(death.outcome.exit_code, 7);
    EXPECT_EQ(death.outcome.pid, 4711);
    EXPECT_EQ(death.outcome.sentence, "rank 3 (local 1 on gpu01) exited with 7 after 10.0 s");
    EXPECT_THAT(death.outcome.remarks, IsEmpty());
}

// A destructor may close a worker's connections seconds before the worker exits. The other workers
// then fail first. The time of the error file still makes this worker the first cause.
TEST(Death, IsWhenItWroteItsAccount) {
    DeathFacts slow = facts({.code = 1});
    slow.error = "ValueError: no data", slow.error_written = at(17);
    const Death death = judge_death(slow);
    EXPECT_EQ(death.at, at(17));
    EXPECT_EQ(death.outcome.error, "ValueError: no data");
}

// The clock of a file server may be wrong. A time that this worker cannot have written at (before
// second 10, after second 20) must not decide which failure was the first.
TEST(Death, AnAccountFromOutsideItsLifeSaysNothingOfTheTime) {
    for (const double written : {9.0, 21.0}) {
        DeathFacts wrong = facts({.code = 1});
        wrong.error = "ValueError", wrong.error_written = at(written);
        EXPECT_EQ(judge_death(wrong).at, at(20));
    }
}

// The worker fails at 17, the others see this, and the stop that follows at 18 kills the worker
// before it can exit. If it counted as "killed by ddprun", the report would have no first cause.
TEST(Death, OneThatTheStopCutShortHasFailedByItself) {
    DeathFacts cut = facts({.code = 0, .signal = 15});
    cut.error = "ValueError: no data", cut.error_written = at(17), cut.stopped = at(18);
    const Death death = judge_death(cut);
    EXPECT_EQ(death.at, at(17));
    EXPECT_EQ(death.outcome.exit_code, 1);
    EXPECT_EQ(death.outcome.signal, 0);
    EXPECT_THAT(death.outcome.remarks, ElementsAre(HasSubstr("counted as exit code 1")));
    // Two ranks with a wrong argument: the first stops the second, which was to end with 2, too.
    cut.error_code = 2;
    EXPECT_EQ(judge_death(cut).outcome.exit_code, 2);
    EXPECT_THAT(judge_death(cut).outcome.remarks, ElementsAre(HasSubstr("counted as exit code 2")));
    // An error file that is younger than the stop describes what the stop caused: the signal stays.
    cut.error_written = at(19);
    EXPECT_EQ(judge_death(cut).outcome.signal, 15);
}

// The kernel's word replaces the guess "often out of memory" that a plain SIGKILL gets.
TEST(Death, NamesWhoSaysThatMemoryWasShort) {
    DeathFacts killed = facts({.code = 0, .signal = 9});
    killed.memory_kill = "the kernel's log says so";
    const auto outcome = judge_death(killed).outcome;
    EXPECT_TRUE(outcome.out_of_memory);
    EXPECT_THAT(outcome.sentence, HasSubstr("; out of memory: the kernel's log says so"));
    EXPECT_THAT(outcome.sentence, testing::Not(HasSubstr("often")));
}

// The kernel has killed a process of a data loader, and the worker fails for lack of it. The
// worker's own status does not show that, so a remark has to.
TEST(Death, NamesMemoryKillsOfOthers) {
    DeathFacts failed = facts({.code = 1});
    failed.other_kills = 2;
    EXPECT_THAT(judge_death(failed).outcome.remarks,
                ElementsAre("while it ran, the kernel killed 2 processes of its control group for "
                            "lack of memory"));
}

// A worker's timer runs out, and ddprun kills the worker. Without this sentence the user would look
// for a lack of memory that never was.
TEST(Death, SaysThatDdprunSentTheSignal) {
    DeathFacts late = facts({.code = 0, .signal = 9});
    late.sent_signal = "its timer step has run out";
    EXPECT_THAT(judge_death(late).outcome.sentence,
                HasSubstr("; ddprun sent it: its timer step has run out"));
}

// Both are remarks: they help to find the cause, but they are not the cause.
TEST(Death, NamesCoreDumpAndBrokenErrorFile) {
    DeathFacts dumped = facts({.code = 0, .signal = 11, .core = true});
    dumped.core_place = "/data/core.4711";
    dumped.error_problem = "error file /e is not JSON";
    dumped.tail = {"last"};
    const auto outcome = judge_death(dumped).outcome;
    EXPECT_TRUE(outcome.core_dumped);
    EXPECT_THAT(outcome.remarks,
                ElementsAre("error file /e is not JSON", "core dump: /data/core.4711"));
    EXPECT_THAT(outcome.tail, ElementsAre("last"));
}

// A program may write an error file for an exception that it handles. With exit code 0 this file
// neither adds an error nor moves the end of the worker.
TEST(Death, ASuccessHasNothingToSay) {
    DeathFacts fine = facts({});
    fine.error = "handled", fine.tail = {"done"}, fine.error_written = at(12);
    const Death death = judge_death(fine);
    EXPECT_FALSE(death.outcome.failed());
    EXPECT_EQ(death.at, at(20));
    EXPECT_THAT(death.outcome.tail, IsEmpty());
}

// Each line counts one byte more than its text, for its line end: "three" takes 6 of 9 bytes, and 2
// characters of "two" fit into the other 3. A cut line keeps its end, which says more.
TEST(Tail, KeepsTheEndWithinItsBytes) {
    EXPECT_THAT(bounded_tail({"one", "two", "three"}, 100), ElementsAre("one", "two", "three"));
    EXPECT_THAT(bounded_tail({"one", "two", "three"}, 9), ElementsAre("wo", "three"));
    EXPECT_THAT(bounded_tail({std::string(100, 'x')}, 5), ElementsAre("xxxx"));
    EXPECT_THAT(bounded_tail({}, 5), IsEmpty());
}
