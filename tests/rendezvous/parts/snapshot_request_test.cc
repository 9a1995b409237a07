// Which snapshot answers an operator's request (snapshot_request.h). Pure.
#include "rendezvous/parts/snapshot_request.h"

#include <gtest/gtest.h>

namespace ddprun::rendezvous {
namespace {

constexpr EntryNumber kEntry{7};

TEST(SnapshotRequest, IsAnsweredByANewerSnapshot) {
    SnapshotRequest request;
    EXPECT_FALSE(request.reported(40)) << "nobody has asked";
    request.ask("alice", kEntry);
    EXPECT_FALSE(request.reported(40)) << "that one was there before";
    ASSERT_TRUE(request.open());
    const auto answered = request.reported(50);
    ASSERT_TRUE(answered);
    EXPECT_EQ(answered->by, "alice");
    EXPECT_FALSE(request.open());
    EXPECT_FALSE(request.reported(60)) << "once";
}

// A program says at its start which snapshot it has loaded.
TEST(SnapshotRequest, Rule27r_IsNotAnsweredByTheOneThatWasLoaded) {
    SnapshotRequest request;
    request.reported(40);
    request.generation_began();
    request.ask("alice", kEntry);
    EXPECT_FALSE(request.reported(40));
    EXPECT_TRUE(request.reported(41));
}

// The newest snapshot was damaged, and an older one was loaded. The steps are trained again.
TEST(SnapshotRequest, CountsFromAnOlderOneThatWasLoaded) {
    SnapshotRequest request;
    request.reported(40);
    request.generation_began();
    request.ask("alice", kEntry);
    EXPECT_FALSE(request.reported(20));
    EXPECT_TRUE(request.reported(30));
}

// Nodes and workers do what has a higher number than what they have done.
TEST(SnapshotRequest, NumbersGrowOverLeaders) {
    SnapshotRequest one, next;
    one.ask("alice", kEntry);
    const std::int64_t first = one.open()->number;
    one.ask("bob", kEntry);
    EXPECT_GT(one.open()->number, first);
    next.ask("carol", EntryNumber{kEntry.value + 1});
    EXPECT_GT(next.open()->number, one.open()->number);
    next.ask("mallory", EntryNumber{std::int64_t{1} << 61});
    EXPECT_GT(next.open()->number, 0) << "no overflow";
}

TEST(SnapshotRequest, EndsWithItsGeneration) {
    SnapshotRequest request;
    request.ask("alice", kEntry);
    request.generation_ended();
    EXPECT_FALSE(request.open());
    request.generation_is_held(EntryNumber{8});
    EXPECT_FALSE(request.open());
}

TEST(SnapshotRequest, IsMadeAnewForAStop) {
    SnapshotRequest request;
    request.ask("alice", kEntry);
    request.stop_after("alice");
    request.generation_ended();
    EXPECT_FALSE(request.open());
    request.generation_is_held(EntryNumber{8});
    ASSERT_TRUE(request.open());
    EXPECT_EQ(request.open()->by, "alice");
    request.stops();
    EXPECT_FALSE(request.open());
    EXPECT_EQ(request.stop_by(), "");
}

}  // namespace
}  // namespace ddprun::rendezvous
