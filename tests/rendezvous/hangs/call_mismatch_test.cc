// Whose calls of collectives differ, from what all ranks have recorded. Pure.
#include "rendezvous/hangs/call_mismatch.h"

#include <gmock/gmock.h>

namespace ddprun::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kReduce = "all_reduce of [4160] Float";
const std::string kGroup = "group 0 (default_pg, gloo)";

// The newest of these calls has number `last`; the ranks wait in `waits_in`.
RecordedCalls calls(std::vector<int> ranks, std::int64_t last, std::vector<std::string> texts,
                    std::int64_t waits_in = 0) {
    RecordedCalls record{std::move(ranks), kGroup, last, 0, std::move(texts), waits_in};
    record.first = last + 1 - static_cast<std::int64_t>(record.calls.size());
    return record;
}

std::string name(int rank) { return "rank " + std::to_string(rank); }
// Without the words that are always the same.
std::string said(const std::vector<RecordedCalls>& recorded, int world_size = 4) {
    const std::string text = recorded_sentence(recorded, world_size, name);
    const std::string first = "; as PyTorch's flight recorders have it, ";
    EXPECT_TRUE(text.empty() || text.starts_with(first)) << text;
    return text.empty() ? text : text.substr(first.size());
}

// Rank 1 waits in a barrier, and the others in an all_reduce under the same number. It is said on
// which ranks is what, those that are fewer first.
TEST(CallMismatch, TheFirstNumberUnderWhichCallsDiffer) {
    const std::vector<RecordedCalls> recorded{
        calls({0, 2}, 12, {"broadcast", kReduce, kReduce}, 11),
        calls({1}, 12, {"broadcast", "barrier", "barrier"}, 11)};
    EXPECT_THAT(call_mismatches(recorded),
                ElementsAre(CallMismatch{kGroup, 11, {{"barrier", {1}}, {kReduce, {0, 2}}}, {}}));
    EXPECT_EQ(said(recorded),
              "call 11 of group 0 (default_pg, gloo) is barrier on rank 1, and "
              "all_reduce of [4160] Float on rank 0 and rank 2");
}

TEST(CallMismatch, TheSameOperationOfAnotherSize) {
    EXPECT_EQ(said({calls({0, 1, 2}, 3, {"all_reduce of [8] Float"}, 3),
                    calls({3}, 3, {"all_reduce of [8] Double"}, 3)}),
              "call 3 of group 0 (default_pg, gloo) is all_reduce of [8] Double on rank 3, and "
              "all_reduce of [8] Float on rank 0, rank 1 and rank 2");
}

// The root of a broadcast sends and goes on. So its call has ended there, and not on the others.
TEST(CallMismatch, ACallThatHasEndedOnOneRankStillCountsWhereOthersWaitInIt) {
    EXPECT_EQ(call_mismatches({calls({0}, 12, {kReduce, "broadcast", kReduce}, 12),
                               calls({1, 2}, 11, {kReduce, "all_gather"}, 11)}),
              (std::vector<CallMismatch>{
                  {kGroup, 11, {{"broadcast", {0}}, {"all_gather", {1, 2}}}, {}}}));
}

// What all have behind them did no harm.
TEST(CallMismatch, OlderCallsDoNotCount) {
    EXPECT_THAT(call_mismatches({calls({0}, 12, {"gather", kReduce}, 12),
                                 calls({1}, 12, {"scatter", kReduce}, 12)}),
                IsEmpty());
    EXPECT_THAT(call_mismatches({calls({0}, 12, {"gather"}), calls({1}, 12, {"scatter"})}),
                IsEmpty())
        << "nobody waits";
}

TEST(CallMismatch, WhoHasNotMadeTheCallInWhichOthersWait) {
    const std::vector<RecordedCalls> recorded{calls({0, 3}, 11, {kReduce, kReduce}, 11),
                                              calls({1}, 10, {kReduce}),
                                              calls({2}, 13, {kReduce, kReduce, kReduce}, 11)};
    EXPECT_THAT(call_mismatches(recorded),
                ElementsAre(CallMismatch{kGroup, 11, {{kReduce, {0, 2, 3}}}, {1}}));
    EXPECT_EQ(said(recorded),
              "rank 1 has not made call 11 of group 0 (default_pg, gloo), all_reduce "
              "of [4160] Float, but rank 0, rank 2 and rank 3 have");
}

// A rank that has sent what others need is ahead, and waits for nobody.
TEST(CallMismatch, WhoIsAheadWithoutWaitingIsNotWaitedFor) {
    EXPECT_THAT(
        call_mismatches({calls({0}, 12, {kReduce, "broadcast"}), calls({1}, 11, {kReduce})}),
        IsEmpty());
}

TEST(CallMismatch, ManyRanksAreCounted) {
    EXPECT_EQ(
        said({calls({0, 1, 2, 3, 4}, 11, {kReduce}, 11), calls({5}, 10, {kReduce}),
              calls({6}, 10, {kReduce})},
             7),
        "rank 5 and rank 6 have not made call 11 of group 0 (default_pg, gloo), all_reduce of "
        "[4160] Float, but 5 ranks have");
}

// Ranks of two groups may wait for each other. Two groups are told; where calls differ comes first.
TEST(CallMismatch, GroupsAreComparedEachByItself) {
    RecordedCalls behind = calls({1}, 10, {kReduce}), sub = calls({0}, 1, {"barrier"}, 1),
                  other = calls({1}, 1, {"broadcast"}, 1);
    sub.group = other.group = "group 1 (gloo)";
    EXPECT_EQ(
        said({calls({0}, 11, {kReduce, kReduce}, 11), behind, sub, other}),
        "call 1 of group 1 (gloo) is barrier on rank 0, and broadcast on rank 1; rank 1 has "
        "not made call 11 of group 0 (default_pg, gloo), all_reduce of [4160] Float, but rank "
        "0 has");
}

// Then what was sent is lost. Where a rank has not answered, nothing can be said.
TEST(CallMismatch, AllHaveMadeTheSameCalls) {
    const std::vector<RecordedCalls> recorded{calls({0, 1}, 11, {kReduce}, 11),
                                              calls({2}, 11, {"", kReduce}, 11)};
    EXPECT_EQ(said(recorded, 3), "all have made the same calls");
    EXPECT_EQ(said(recorded, 4), "");
    EXPECT_EQ(said({}, 4), "");
}

// The numbers come from the network.
TEST(CallMismatch, BearsAnyNumbers) {
    const RecordedCalls none{{}, kGroup, 0, 0, {}, 0};
    const RecordedCalls huge{{7}, kGroup, std::int64_t{1} << 62, std::int64_t{1} << 62, {"a"}, 1};
    const RecordedCalls reversed{{8}, kGroup, 3, 9, {"b", "c"}, 1};
    EXPECT_THAT(call_mismatches({none, huge, reversed}), IsEmpty());
}

}  // namespace
}  // namespace ddprun::rendezvous
