// How endings are made, and the names of verdicts in reports. Pure.
#include <gmock/gmock.h>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {
namespace {

// A scheduler starts a job again if it ends with 75, work left: after its time limit or a named
// signal. A plain signal, such as scancel, ends it with 128 + 15.
TEST(Ending, OfAStopLeavesWorkButForAPlainSignal) {
    const Ending by_signal = ended_by_stop(StopCause::signal, 15, "stopped by SIGTERM");
    EXPECT_EQ(by_signal.verdict, Verdict::user_signal);
    EXPECT_EQ(by_signal.code, 143);
    EXPECT_EQ(by_signal.sentence, "stopped by SIGTERM");
    EXPECT_EQ(ended_by_stop(StopCause::node_leaves, 15, "").verdict, Verdict::left);
    EXPECT_EQ(ended_by_stop(StopCause::node_leaves, 15, "").code, 143);
    // The number of the signal does not matter there.
    for (const StopCause cause : {StopCause::time_limit, StopCause::named_signal}) {
        EXPECT_EQ(ended_by_stop(cause, 10, "").verdict, Verdict::work_left);
        EXPECT_EQ(ended_by_stop(cause, 10, "").code, 75);
    }
}

// Nobody's worker has failed, so no rank may be named.
TEST(Ending, OfNodesThatCannotMeet) {
    const Ending ending = unavailable("only 1 of 2 nodes came");
    EXPECT_EQ(ending.verdict, Verdict::unavailable);
    EXPECT_EQ(ending.code, 69);
    EXPECT_FALSE(ending.first_failure || ending.loss);
}

// Programs read these names in the JSON report, so they never change.
TEST(Verdict, HasANameInReports) {
    EXPECT_STREQ(to_string(Verdict::succeeded), "succeeded");
    EXPECT_STREQ(to_string(Verdict::worker_failed), "worker_failed");
    EXPECT_STREQ(to_string(Verdict::unavailable), "unavailable");
    EXPECT_STREQ(to_string(Verdict::internal), "internal");
    EXPECT_STREQ(to_string(Verdict::work_left), "stopped_with_work_left");
    EXPECT_STREQ(to_string(Verdict::user_signal), "stopped_by_signal");
    EXPECT_STREQ(to_string(Verdict::left), "left");
}

}  // namespace
}  // namespace ddprun::rendezvous
