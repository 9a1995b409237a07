// Who waits for whom, from what the nodes see of workers that stand still. Pure.
#include "rendezvous/rules/standstill.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using enum Doing;
using Kind = Standstill::Kind;
using testing::ElementsAre;
using testing::IsEmpty;

// Ranks 0, 1, … do these; all for 20 s, at place 7.
std::vector<RankStill> ranks(const std::vector<Doing>& all) {
    std::vector<RankStill> list;
    for (const Doing doing : all)
        list.push_back({static_cast<int>(list.size()), doing, sec(20), sec(1), 7});
    return list;
}

std::optional<Standstill> judge(const std::vector<RankStill>& all) {
    return judge_standstill(all, static_cast<int>(all.size()));
}

std::vector<int> odd(const Standstill& standstill) {
    std::vector<int> list;
    for (const RankStill& rank : standstill.odd) list.push_back(rank.rank);
    return list;
}

void expect_odd(const std::vector<Doing>& all, Kind kind, const std::vector<int>& expected) {
    const auto found = judge(ranks(all));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->kind, kind);
    EXPECT_EQ(odd(*found), expected);
}

// The rank outside is what the others wait for, whatever it does there.
TEST(Standstill, AllWaitForTheRankOutside) {
    for (const Doing doing : {waits, computes, sleeps, reads, waits_for_child, has_ended})
        expect_odd({in_collective, doing, in_collective}, Kind::waits_for, {1});
    expect_odd({sleeps, computes, in_collective}, Kind::waits_for, {0, 1});
}

// It may have been stopped inside a collective, or in init_process_group().
TEST(Standstill, AStoppedRankComesFirst) {
    expect_odd({in_collective, is_stopped, in_collective}, Kind::stopped, {1});
    expect_odd({meets, is_stopped, sleeps}, Kind::stopped, {1});
    expect_odd({in_collective, hangs_in_kernel, sleeps}, Kind::in_kernel, {1});
}

// Who has not come to new_group() may wait in a collective for those that have. From the collective
// alone it would look the other way round.
TEST(Standstill, WhoHasNotComeIsNamedAndNotWhoWaits) {
    expect_odd({meets, in_collective, meets}, Kind::never_came, {1});
    expect_odd({meets, meets, sleeps}, Kind::never_came, {2});
}

// All are inside. They are at one line or not.
TEST(Standstill, TwoLinesAreAMismatch) {
    auto all = ranks({in_collective, in_collective, in_collective});
    EXPECT_EQ(judge(all)->kind, Kind::all_inside);
    EXPECT_THAT(judge(all)->odd, IsEmpty());
    all[2].place = 8;
    EXPECT_EQ(judge(all)->kind, Kind::mismatch);
    EXPECT_THAT(odd(*judge(all)), ElementsAre(2));
    // A place that is not known is no other place.
    all[2].place = 0;
    EXPECT_EQ(judge(all)->kind, Kind::all_inside);
}

// Nothing is said while anything moves, or where nobody waits for anybody.
TEST(Standstill, IsNoneWhileARankMoves) {
    EXPECT_FALSE(judge_standstill(ranks({in_collective, sleeps}), 3));
    EXPECT_FALSE(judge_standstill({}, 0));
    EXPECT_FALSE(judge(ranks({sleeps, sleeps, computes})));
    EXPECT_FALSE(judge(ranks({is_stopped, sleeps})));
}

// The shortest counts, and the slowest rhythm: 15 s, or ten pauses.
TEST(Standstill, IsToldLaterInASlowJob) {
    auto all = ranks({in_collective, sleeps});
    all[0].lasted = sec(11);
    EXPECT_EQ(judge(all)->lasted, sec(11));
    EXPECT_EQ(told_after(*judge(all)), sec(15));
    all[1].usual = sec(4);
    EXPECT_EQ(told_after(*judge(all)), sec(40));
}

TEST(Standstill, IsTheSameWhileTheSameRanksAreOdd) {
    const auto one = judge(ranks({in_collective, sleeps, in_collective}));
    auto later = ranks({in_collective, computes, in_collective});
    later[0].lasted = sec(30);
    EXPECT_TRUE(one->same_as(*judge(later)));
    EXPECT_FALSE(one->same_as(*judge(ranks({in_collective, in_collective, sleeps}))));
    EXPECT_FALSE(one->same_as(*judge(ranks({in_collective, is_stopped, in_collective}))));
}

Whereabouts find(int rank) {
    const std::string number = std::to_string(rank);
    return {"rank " + number + " (local " + number + " on n1)",
            "f" + number + " (a.py:" + number + ")"};
}

TEST(StandstillSentence, NamesRanksAndPlaces) {
    EXPECT_EQ(
        standstill_sentence(*judge(ranks({in_collective, sleeps, in_collective})), find),
        "2 ranks have waited for 20.0 s in a collective, in f0 (a.py:0), for rank 1 (local 1 on "
        "n1), which sleeps in f1 (a.py:1)");
    EXPECT_EQ(standstill_sentence(*judge(ranks({meets, sleeps})), find),
              "1 rank has waited for 20.0 s until all ranks have come, in f0 (a.py:0), and so far "
              "without rank 1 (local 1 on n1), which sleeps in f1 (a.py:1)");
    EXPECT_EQ(
        standstill_sentence(*judge(ranks({in_collective, in_collective})), find),
        "all ranks have waited for 20.0 s in a collective, in f0 (a.py:0): the network between "
        "them is lost, or they have not made the same calls");
    auto all = ranks({in_collective, in_collective, in_collective});
    all[2].place = 8;
    EXPECT_EQ(
        standstill_sentence(*judge(all), find),
        "all ranks have waited for 20.0 s in collectives, but not in the same one: rank 2 "
        "(local 2 on n1), which waits in a collective in f2 (a.py:2); the others in f0 (a.py:0)");
    // Five are missing: three are named. No functions: the program is not Python.
    EXPECT_EQ(
        standstill_sentence(*judge(ranks({in_collective, sleeps, sleeps, sleeps, sleeps, sleeps})),
                            [](int rank) {
                                return Whereabouts{"rank " + std::to_string(rank), ""};
                            }),
        "1 rank has waited for 20.0 s in a collective for rank 1, which sleeps; rank 2, which "
        "sleeps; rank 3, which sleeps; and 2 more");
}

TEST(StandstillSentence, AsksTheOddRanksAndOneMore) {
    EXPECT_THAT(worth_asking(*judge(ranks({in_collective, sleeps, sleeps, sleeps, sleeps}))),
                ElementsAre(1, 2, 3, 0));
    EXPECT_THAT(worth_asking(*judge(ranks({in_collective, in_collective}))), ElementsAre(0));
}

}  // namespace
}  // namespace ddprun::rendezvous
