#include "launcher/failure_report.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::test;
using ddprun::launcher::failure_report;
using rendezvous::Ending;
using rendezvous::Verdict;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

Ending failed() {
    Ending end = ending(Verdict::worker_failed, 1, "restart 3 of 3 used up");
    end.first_failure = exited(13, 1, "ValueError: no data");
    end.first_failure->tail = {"loading", "Traceback"};
    end.first_failure_node = "gpu01";
    end.consequences = 7;
    return end;
}

}  // namespace

TEST(FailureReport, SaysNothingAfterASuccess) {
    EXPECT_THAT(failure_report(ending(Verdict::succeeded, 0, "all 2 workers succeeded"), true),
                IsEmpty());
}

// Nobody failed: the reason is all there is.
TEST(FailureReport, SaysTheReasonWhereNoWorkerFailed) {
    EXPECT_THAT(failure_report(ending(Verdict::unavailable, 69, "too few nodes"), true),
                ElementsAre("too few nodes"));
}

TEST(FailureReport, TellsTheWholeStoryOnOneNode) {
    EXPECT_THAT(failure_report(failed(), true),
                ElementsAre("first failure: rank 13 exited with 1; restart 3 of 3 used up",
                            "its error: ValueError: no data", "its last lines:", "    loading",
                            "    Traceback", "7 other workers failed after it, as a consequence"));
}

TEST(FailureReport, IsOneLineOnTheOtherNodes) {
    EXPECT_THAT(failure_report(failed(), false),
                ElementsAre("first failure: rank 13 exited with 1; restart 3 of 3 used up"));
}

// Of a job that hung: where the slowest are.
TEST(FailureReport, TellsWhereAHungJobStands) {
    Ending end = ending(Verdict::worker_failed, rendezvous::kHungCode, "restart 1 of 1 used up");
    end.first_failure = exited(3, 0);
    end.first_failure->sentence = "no rank has made progress for 35.0 s";
    end.first_failure->hung = true;
    end.first_failure->stack = {"rank 3 (local 1 on gpu02), at step 7:", "    thread 812 sleeps"};
    EXPECT_THAT(failure_report(end, true),
                ElementsAre("first failure: no rank has made progress for 35.0 s; restart 1 of 1 "
                            "used up",
                            "where the slowest are:", "    rank 3 (local 1 on gpu02), at step 7:",
                            "        thread 812 sleeps"));
}

// A worker that said nothing and stood alone leaves no empty headings.
TEST(FailureReport, LeavesOutWhatIsNotKnown) {
    Ending end = ending(Verdict::worker_failed, 137, "no restart: --max-restarts is 0");
    end.first_failure = killed(2, 9);
    EXPECT_THAT(
        failure_report(end, true),
        ElementsAre(
            "first failure: rank 2 was killed by signal 9; no restart: --max-restarts is 0"));
}
