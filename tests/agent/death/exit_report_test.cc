// From a wait status to the sentence that the operator reads. Pure: statuses are made with the
// system's own macros, and no process runs.
#include "agent/death/exit_report.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

using namespace ddprun;
using namespace ddprun::agent;

// The code under test decodes by hand, since a pure file may not include <sys/wait.h>. The macros
// of that header are the reference.
TEST(ExitReport, ReadsAWaitStatusAsTheSystemDoes) {
    for (int code : {0, 1, 42, 255})
        EXPECT_EQ(from_wait_status(W_EXITCODE(code, 0)), (ExitStatus{code, 0, false}));
    EXPECT_EQ(from_wait_status(W_EXITCODE(0, SIGKILL)), (ExitStatus{0, SIGKILL, false}));
    EXPECT_EQ(from_wait_status(W_EXITCODE(0, SIGSEGV) | WCOREFLAG), (ExitStatus{0, SIGSEGV, true}));
}

// ddprun exits with this code, so that scripts and Slurm see what a shell would show them.
TEST(ExitReport, ShellCodeIsTheCodeOr128PlusSignal) {
    EXPECT_EQ((ExitStatus{3, 0, false}.shell_code()), 3);
    EXPECT_EQ((ExitStatus{0, 9, false}.shell_code()), 137);
    EXPECT_FALSE(ExitStatus{}.failed());
}

// The names come from a table by number. The signals here lie at its beginning, in its middle and
// at its end (SIGSYS, 31), so a missing entry shows. 40 is a real-time signal, which has no name.
TEST(ExitReport, KnowsTheNamesOfSignals) {
    EXPECT_EQ(signal_name(SIGHUP), "SIGHUP");
    EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
    EXPECT_EQ(signal_name(SIGSYS), "SIGSYS");
    EXPECT_EQ(signal_name(SIGXFSZ), "SIGXFSZ");
    EXPECT_EQ(signal_name(40), "signal 40");
    EXPECT_EQ(signal_name(-1), "signal -1");
}

// Rank, node, cause, duration, and a command to run next. The codes 127 and 137 are those that a
// shell gives when a program is missing or was killed.
TEST(ExitReport, SaysWhoHowAndWhereToLook) {
    ExitSubject who;
    who.rank = 13, who.local_rank = 5, who.node = "gpu01", who.ran = std::chrono::minutes{42};
    who.slurm_job_id = "8812";
    EXPECT_EQ(exit_sentence({0, SIGKILL, false}, who),
              "rank 13 (local 5 on gpu01) was killed by signal 9 (SIGKILL) after 42 m 00 s; often "
              "out of memory: see dmesg or sacct -j 8812");
    EXPECT_EQ(exit_sentence({1, 0, false}, who),
              "rank 13 (local 5 on gpu01) exited with 1 after 42 m 00 s");
    EXPECT_NE(exit_sentence({127, 0, false}, who).find("not found"), std::string::npos);
    EXPECT_NE(exit_sentence({137, 0, false}, who).find("SIGKILL"), std::string::npos);
    EXPECT_NE(exit_sentence({0, SIGSEGV, true}, who).find(", core dumped; "), std::string::npos);
}

// During a stop ddprun sends SIGKILL itself. "Often out of memory" would send the user the wrong
// way.
TEST(ExitReport, DoesNotGuessWhenItWasOurSignal) {
    ExitSubject who;
    who.stopped_by_us = true;
    who.ran = std::chrono::seconds{3};
    EXPECT_EQ(exit_sentence({0, SIGKILL, false}, who),
              "rank 0 (local 0) was killed by signal 9 (SIGKILL) after 3.0 s, while ddprun was "
              "stopping it");
}
