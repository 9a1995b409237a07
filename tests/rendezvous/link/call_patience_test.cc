// How long a call to a rendezvous goes on and what it says at its end, with times of the test's
// choice. Pure. client_test.cc has the calls themselves.
#include "rendezvous/link/call_patience.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ddprun::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The call starts at 100 s.
constexpr Time kStart{seconds{100}};

// The leader's host starts last. The first tries come quickly, so that nothing is lost when it is
// up, and later ones do not flood a host that boots.
TEST(CallPatience, PausesDoubleUpToFiftyMilliseconds) {
    CallPatience patience(1, kNever, false);
    for (const int pause : {1, 2, 4, 8, 16, 32, 50, 50})
        EXPECT_EQ(patience.next_pause(kStart), milliseconds{pause});
    // Without a deadline it goes on for as long as the job waits.
    EXPECT_TRUE(patience.goes_on(kStart + std::chrono::hours{1000}));
    EXPECT_EQ(patience.left(kStart, seconds{5}), seconds{5});
}

// Near its end every wait is cut, so the call ends at the deadline and not a pause or a connect
// later.
TEST(CallPatience, NoWaitPassesTheDeadline) {
    CallPatience patience(1, kStart + milliseconds{5}, false);
    EXPECT_EQ(patience.left(kStart, milliseconds{3}), milliseconds{3});
    EXPECT_EQ(patience.left(kStart, seconds{5}), milliseconds{5});
    for (int round = 0; round < 3; ++round) patience.next_pause(kStart);
    EXPECT_EQ(patience.next_pause(kStart), milliseconds{5}) << "not 8";
    EXPECT_FALSE(patience.goes_on(kStart + milliseconds{5}));
    EXPECT_EQ(patience.next_pause(kStart + milliseconds{5}), std::nullopt);
    EXPECT_EQ(patience.left(kStart + seconds{1}, seconds{5}), Duration{0});
}

// Another job's rendezvous has one of our ports. Ours may come up for 30 s; then the user must hear
// the refusal. The time counts from the first one, whoever refuses next.
TEST(CallPatience, PassesOverRefusalsForThirtySeconds) {
    CallPatience patience(2, kNever, false);
    EXPECT_TRUE(patience.passes_over_refusal(kStart));
    EXPECT_TRUE(patience.passes_over_refusal(kStart + seconds{29}));
    EXPECT_FALSE(patience.passes_over_refusal(kStart + seconds{30}));
    // Nobody else could answer, so the refusal counts at once.
    CallPatience alone(1, kNever, false);
    EXPECT_FALSE(alone.passes_over_refusal(kStart));
}

// The user has mistyped the endpoint. A node that calls for ten minutes without a word looks hung.
TEST(CallPatience, SaysForWhatItWaits) {
    CallPatience patience(1, kStart + seconds{600}, false);
    patience.note("gpu01:29400: Connection refused");
    std::vector<std::string> said;
    for (int second = 0; second < 600; ++second)
        if (auto word = patience.word(kStart + seconds{second}))
            said.push_back(std::to_string(second) + " s: " + *word);
    ASSERT_EQ(said.size(), 4U) << "after 30, 60, 120 and 240 s";
    EXPECT_EQ(
        said[1],
        "90 s: still calling the rendezvous; last: gpu01:29400: Connection refused; giving up "
        "in 8 m 30 s");
    CallPatience once(1, kNever, true);
    EXPECT_FALSE(once.word(kStart) || once.word(kStart + seconds{100}));
}

// The deadline has passed. The sentence has what the last attempt met. An attempt that the deadline
// cut short has learned nothing, so the one before it is named.
TEST(CallPatience, SaysWhatTheLastWholeAttemptMet) {
    const Time deadline = kStart + seconds{10};
    CallPatience patience(3, deadline, false);
    patience.note("gpu01:29400: Connection refused");
    patience.note_silence(deadline, "10.0.0.2:29400 does not answer");
    EXPECT_EQ(patience.verdict(deadline).code(), ErrorCode::timed_out);
    EXPECT_EQ(patience.verdict(deadline).sentence(),
              "could not reach the rendezvous in time (3 candidates, last: gpu01:29400: Connection "
              "refused)");
    // It had the time that an answer may take.
    patience.note_silence(kStart + seconds{5}, "10.0.0.2:29400 does not answer");
    EXPECT_EQ(patience.verdict(deadline).sentence(),
              "could not reach the rendezvous in time (3 candidates, last: 10.0.0.2:29400 does not "
              "answer)");
    // Better than no sentence.
    CallPatience short_call(1, deadline, false);
    short_call.note_silence(deadline, "10.0.0.2:29400 does not answer");
    EXPECT_EQ(short_call.verdict(deadline).sentence(),
              "could not reach the rendezvous in time (last: 10.0.0.2:29400 does not answer)");
    EXPECT_EQ(CallPatience(0, deadline, false).verdict(deadline).sentence(),
              "could not reach the rendezvous in time (0 candidates, last: no candidate to call)");
}

// A leader asks another node once how it stands. If nobody is there, that is the answer; only if
// the time is over, it is a timeout.
TEST(CallPatience, ACallThatGoesRoundOnceGivesUpAfterIt) {
    const Time deadline = kStart + seconds{2};
    CallPatience patience(1, deadline, true);
    patience.note("gpu01:29400: Connection refused");
    EXPECT_EQ(patience.next_pause(kStart), std::nullopt);
    EXPECT_EQ(patience.verdict(kStart).code(), ErrorCode::unavailable);
    EXPECT_EQ(patience.verdict(kStart).sentence(), "gpu01:29400: Connection refused");
    EXPECT_EQ(patience.verdict(deadline).code(), ErrorCode::timed_out);
}

}  // namespace
}  // namespace ddprun::rendezvous
