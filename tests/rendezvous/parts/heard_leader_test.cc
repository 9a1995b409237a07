// Two small parts of the rendezvous machine: the answer of a dormant service, and the output of a
// step. Pure. The lease is 10 s.
#include "rendezvous/parts/heard_leader.h"

#include <gmock/gmock.h>

#include "rendezvous/parts/output.h"
#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

constexpr Duration kHeardLease = std::chrono::seconds{10};

// A caller has lost its leader and asks here. A leader that this node heard 5 s (0.5 L) ago may be
// the lost one, so the answer is "wait" (no address).
TEST(HeardLeader, IsNamedForHalfALease) {
    HeardLeader heard;
    EXPECT_EQ(heard.answer(at(0), kHeardLease).address, "") << "wait";
    heard.heard({node("a"), "a", 7}, at(1));
    EXPECT_EQ(heard.answer(at(5.9), kHeardLease).address, "a");
    EXPECT_EQ(heard.answer(at(5.9), kHeardLease).port, 7);
    EXPECT_EQ(heard.answer(at(6), kHeardLease).address, "");
    heard.heard({node("a"), "a", 7}, at(7));
    // An empty peer: this node has lost the leader too.
    heard.heard({}, at(8));
    EXPECT_EQ(heard.answer(at(8), kHeardLease).address, "") << "it is lost";
}

// The shell carries the effects out in this order: a log line before the connection closes.
TEST(Output, KeepsTheEarliestTimeAndTheOrder) {
    Output out;
    out.begin();
    out.wake_at(at(5));
    out.wake_at(at(3));
    out.note(Note::Level::info, "one");
    out.close(Session{1});
    EXPECT_EQ(out.wake(), at(3));
    const Effects effects = out.take();
    ASSERT_EQ(effects.size(), 2u);
    EXPECT_TRUE(std::holds_alternative<Note>(effects[0]));
    EXPECT_TRUE(std::holds_alternative<Close>(effects[1]));
    out.begin();
    EXPECT_EQ(out.wake(), kNever);
    EXPECT_TRUE(out.take().empty());
}

}  // namespace
}  // namespace ddprun::rendezvous
