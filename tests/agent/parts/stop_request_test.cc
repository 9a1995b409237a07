// Three small parts of the agent machine: which request for a stop counts, deaths that a stop may
// have caused, and workers that outlive SIGKILL. Pure.
#include "agent/parts/stop_request.h"

#include <gmock/gmock.h>

#include "agent/parts/sweep_watch.h"
#include "agent/parts/withheld_failures.h"
#include "tests/support/builders.h"

namespace ddprun::agent {
namespace {

using namespace ddprun::test;
using rendezvous::StopAsked;
using rendezvous::StopCause;

StopAsked by_signal(int signal, bool requeue) {
    return {
        .signal = signal, .reason = {}, .cause = StopCause::signal, .left = {}, .requeue = requeue};
}

// The first request counts, so that all nodes stop for one reason. The exception is a user's
// scancel while the job stops to be requeued.
TEST(StopRequest, TheFirstCountsButForOneThatCancels) {
    StopRequest request;
    EXPECT_TRUE(request.would_take(by_signal(10, true)));
    request.take(by_signal(10, true));
    EXPECT_FALSE(request.would_take(by_signal(12, true)));
    EXPECT_FALSE(request.would_take({.signal = 0, .reason = {}, .cause = StopCause::time_limit}));
    EXPECT_TRUE(request.would_take(by_signal(15, false))) << "scancel";
    request.take(by_signal(15, false));
    EXPECT_FALSE(request.would_take(by_signal(15, false)));
}

// The request is sent again to each new leader, and by then less time is left.
TEST(StopRequest, TellsTheTimeThatIsLeft) {
    StopRequest request;
    request.take(by_signal(10, true));
    EXPECT_EQ(request.with_time_left(sec(30)).left, sec(30));
    EXPECT_EQ(request.with_time_left(std::nullopt).left, sec(30)) << "no newer word";
}

TEST(StopRequest, IsNotAwaitedOnceItIsAnswered) {
    StopRequest request;
    EXPECT_EQ(request.answer_by(), kNever);
    request.await_answer(at(3));
    EXPECT_EQ(request.answer_by(), at(3));
    // The Stop of the leader is the answer.
    request.answered();
    EXPECT_EQ(request.answer_by(), kNever);
}

// Two workers die of a signal 0.5 s apart. Both are judged 1 s after the node heard of the first,
// and each keeps its own time of death, which decides which one was first.
TEST(WithheldFailures, AreJudgedASecondAfterTheFirst) {
    WithheldFailures withheld;
    EXPECT_EQ(withheld.judged_at(), kNever);
    withheld.add(killed(0, 15), at(1), at(1.1));
    withheld.add(killed(1, 15), at(1.5), at(1.6));
    EXPECT_EQ(withheld.judged_at(), at(2.1));
    const auto failures = withheld.take();
    ASSERT_EQ(failures.size(), 2u);
    EXPECT_EQ(failures[1].second, at(1.5));
    EXPECT_TRUE(withheld.empty());
    EXPECT_EQ(withheld.judged_at(), kNever);
    withheld.add(killed(0, 15), at(3), at(3));
    withheld.forget();
    EXPECT_TRUE(withheld.empty());
}

// SIGKILL goes out at 1. If something is left after 60 s, somebody looks at it once.
TEST(SweepWatch, LooksOnceForWhatOutlivesSigkill) {
    SweepWatch sweep;
    EXPECT_FALSE(sweep.look(at(100)));
    // 60 s are far more than a kill takes, even under a high load.
    EXPECT_TRUE(sweep.begin(at(1), sec(60)));
    EXPECT_FALSE(sweep.begin(at(2), sec(60))) << "it is under way";
    EXPECT_FALSE(sweep.look(at(60.9)));
    EXPECT_EQ(sweep.look(at(61)), sec(60));
    EXPECT_FALSE(sweep.look(at(62))) << "once";
    sweep.cannot_kill("rank 0 hangs");
    EXPECT_TRUE(sweep.is_stuck());
    sweep.is_done();
    EXPECT_FALSE(sweep.is_under_way());
}

}  // namespace
}  // namespace ddprun::agent
