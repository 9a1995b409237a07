// How the nodes of a check call each other, over real sockets on loopback. All "nodes" are objects
// of this process, each with a listener and a thread of its own.
#include "launcher/check/check_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

// A node whose clock always shows this time.
std::unique_ptr<Reach> listening(double clock = 1000) {
    return Reach::listen([clock] { return clock; }).value();
}

// What a node knows of another one: where it listens, and the word that proves it.
Reach::Peer peer(int rank, const Reach& of) { return {rank, "127.0.0.1", of.port(), of.word()}; }

// A node that was not reached, with a part of the reason.
auto unreached(int rank, const char* why) {
    return AllOf(Field(&NodeFacts::Unreached::rank, rank),
                 Field(&NodeFacts::Unreached::why, HasSubstr(why)));
}

// Three nodes call each other, and each of them answers while it calls.
TEST(CheckReach, NodesThatReachEachOther) {
    auto a = listening(), b = listening(), c = listening();
    const auto of_a = a->call({peer(1, *b), peer(2, *c)});
    const auto of_c = c->call({peer(0, *a), peer(1, *b)});
    EXPECT_THAT(of_a.unreached, IsEmpty());
    EXPECT_EQ(of_a.reached, 2);
    EXPECT_EQ(of_c.reached, 2);
    EXPECT_FALSE(of_a.clock);  // rank 0 does not call itself
    EXPECT_TRUE(of_c.clock);
}

// Clocks are compared with that of rank 0 only: 1090 − 1000 s. The other node's clock does not
// count.
TEST(CheckReach, ClockThatIsAhead) {
    auto first = listening(1090), other = listening(2000), self = listening(1000);
    const auto outcome = self->call({peer(1, *other), peer(0, *first)});
    ASSERT_TRUE(outcome.clock);
    EXPECT_DOUBLE_EQ(outcome.clock->ahead, 90);
    // The made-up clock stands still, so the message seems to take no time.
    EXPECT_DOUBLE_EQ(outcome.clock->within, 0);
}

// Nobody listens, a name that nobody knows, and another program at the port (a wrong word). Each
// has its own reason, and one such node must not keep the others from being tested.
TEST(CheckReach, NodesThatAreNotReached) {
    auto self = listening(), good = listening();
    auto gone = peer(1, *listening());  // destroyed at once, so nobody listens there
    auto nameless = peer(2, *good), stranger = peer(3, *good);
    nameless.host = "no_such-host.invalid";
    stranger.word = std::string(stranger.word.size(), '0');
    const auto outcome = self->call({stranger, nameless, gone, peer(4, *good)});
    EXPECT_EQ(outcome.reached, 1);
    EXPECT_THAT(outcome.unreached,
                ElementsAre(unreached(1, "127.0.0.1: Connection refused"),
                            unreached(2, "no_such-host.invalid"), unreached(3, "End of file")));
}

// A node calls 64 peers at a time. 300 need several rounds.
TEST(CheckReach, ManyPeers) {
    auto self = listening(), other = listening();
    std::vector<Reach::Peer> peers;
    for (int rank = 1; rank <= 300; ++rank) peers.push_back(peer(rank, *other));
    const auto outcome = self->call(peers);
    EXPECT_EQ(outcome.reached, 300);
    EXPECT_THAT(outcome.unreached, IsEmpty());
}

// The way to loopback begins at loopback. To an unknown name there is none.
TEST(CheckReach, AddressTowardsAHost) {
    EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
    EXPECT_EQ(address_towards("no_such-host.invalid"), std::nullopt);
}

}  // namespace
}  // namespace ddprun::launcher
