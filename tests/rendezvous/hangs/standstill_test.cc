// Who waits for whom, from what the nodes see of workers that stand still. Pure.
#include "rendezvous/hangs/standstill.h"

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
    for (const Doing doing : {waits, computes, sleeps, reads, writes, waits_for_child, has_ended})
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

// A host that is cut off is one end of every connection on which nothing is acknowledged.
TEST(Standstill, FindsTheHostWithoutNetwork) {
    auto all = ranks({in_collective, in_collective, in_collective, in_collective});
    const auto lost = [&](int rank, std::uint32_t from, std::uint32_t to) {
        RankStill& at = all[static_cast<std::size_t>(rank)];
        at.lost_from = from, at.lost_to = to;
    };
    lost(1, 11, 12);
    lost(2, 12, 13);
    EXPECT_EQ(judge(all)->kind, Kind::no_network);
    EXPECT_THAT(odd(*judge(all)), ElementsAre(2));
    // Nothing that it has sent is waiting: the others send to it.
    lost(2, 0, 0);
    lost(3, 13, 12);
    EXPECT_THAT(odd(*judge(all)), ElementsAre(1, 3));
    // Between two hosts nobody can tell whose fault it is.
    lost(1, 0, 0);
    lost(2, 12, 13);
    EXPECT_THAT(odd(*judge(all)), ElementsAre(2, 3));
    for (int rank = 0; rank < 4; ++rank) lost(rank, 11, 12);
    EXPECT_EQ(judge(all)->kind, Kind::no_network);
    EXPECT_THAT(odd(*judge(all)), ElementsAre(0, 1, 2, 3)) << "all on one host";
    // Somebody outside is waited for in any case.
    all[0].doing = sleeps;
    EXPECT_EQ(judge(all)->kind, Kind::waits_for);
}

// Rank 1 is outside, or in whatever else; all have lasted for `lasted`, and nothing has moved in it
// for `unmoved`. A lease of 10 s adds 5 s to --hang-timeout.
bool hangs(Doing doing, double lasted, double unmoved, const Limits& limits, double longest = 0) {
    auto all = ranks({in_collective, doing});
    if (doing == in_collective) all[1].place = 8;
    for (RankStill& rank : all) rank.lasted = sec(lasted);
    all[1].unmoved = sec(unmoved);
    return is_hang(*judge(all), limits, sec(longest));
}

TEST(StandstillHang, IsNoneWithoutHangTimeout) {
    EXPECT_FALSE(hangs(is_stopped, 1e5, 1e5, limits(1, 1)));
}

TEST(StandstillHang, ComesAfterTheTimeThatTheUserGives) {
    Limits l = limits(1, 1);
    l.hang_timeout = sec(60);
    EXPECT_FALSE(hangs(sleeps, 64, 64, l));
    EXPECT_TRUE(hangs(sleeps, 65, 65, l));
    EXPECT_TRUE(hangs(computes, 65, 0, l));
    EXPECT_TRUE(hangs(is_stopped, 65, 0, l, 1000));
    // Longer pauses have ended: one in which something moves shall last for twice as long.
    EXPECT_FALSE(hangs(sleeps, 199, 99, l, 100));
    EXPECT_TRUE(hangs(sleeps, 105, 100, l, 100));
    EXPECT_TRUE(hangs(computes, 200, 0, l, 100));
}

TEST(StandstillHang, Rule22h_IsJudgedByWhatIsSeen) {
    Limits l = limits(1, 1);
    l.hang_timeout = sec(1800);
    l.hang_auto = true;
    EXPECT_FALSE(hangs(in_collective, 59, 0, l));
    EXPECT_TRUE(hangs(in_collective, 60, 0, l)) << "a mismatch";
    for (const Doing doing : {is_stopped, hangs_in_kernel}) {
        EXPECT_FALSE(hangs(doing, 299, 0, l));
        EXPECT_TRUE(hangs(doing, 300, 0, l));
    }
    EXPECT_FALSE(hangs(sleeps, 1799, 299, l));
    EXPECT_TRUE(hangs(sleeps, 305, 300, l));
    EXPECT_FALSE(hangs(sleeps, 305, 300, l, 400)) << "such a pause has ended before";
    EXPECT_FALSE(hangs(computes, 1799, 0, l));
    EXPECT_TRUE(hangs(computes, 1800, 0, l));
    EXPECT_FALSE(hangs(computes, 1900, 0, l, 1000));
    // new_group(): one that waits in another collective never comes; one that computes may.
    const auto missed = [&](Doing doing, double lasted) {
        auto all = ranks({meets, doing});
        for (RankStill& rank : all) rank.lasted = sec(lasted);
        return is_hang(*judge(all), l, Duration{});
    };
    EXPECT_TRUE(missed(in_collective, 60));
    EXPECT_FALSE(missed(computes, 1799));
    // A job whose steps take a minute: ten of them.
    auto slow = ranks({in_collective, in_collective});
    slow[1].place = 8;
    for (RankStill& rank : slow) rank.lasted = sec(599), rank.usual = sec(60);
    EXPECT_FALSE(is_hang(*judge(slow), l, Duration{}));
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

// Rank 2 has imported for 20 s, and nobody waited for it in the first 12 of them.
TEST(Standstill, LastsUntilAllHaveComeSinceTheFirstHas) {
    auto all = ranks({meets, meets, sleeps});
    all[0].lasted = sec(8), all[1].lasted = sec(2);
    EXPECT_EQ(judge(all)->lasted, sec(8));
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
              "rank 1 (local 1 on n1) has not come yet to where all ranks meet; 1 rank waits for "
              "it, 20.0 s so far, in f0 (a.py:0); it sleeps in f1 (a.py:1)");
    const auto calls = [](int rank) {
        const std::string number = std::to_string(rank);
        return Whereabouts{"rank " + number, "f (a.py:" + number + ", init_process_group)"};
    };
    EXPECT_EQ(standstill_sentence(*judge(ranks({meets, meets, sleeps, computes})), calls),
              "2 ranks have not called init_process_group yet; 2 ranks wait for them, 20.0 s so "
              "far, in f (a.py:0, init_process_group); rank 2, which sleeps in f (a.py:2, "
              "init_process_group); rank 3, which computes in f (a.py:3, init_process_group)");
    EXPECT_EQ(
        standstill_sentence(*judge(ranks({in_collective, in_collective})), find),
        "all ranks have waited for 20.0 s in a collective, in f0 (a.py:0): they have not made "
        "the same calls, or what they sent is lost");
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

TEST(StandstillSentence, NamesTheNetwork) {
    auto all = ranks({in_collective, in_collective, in_collective});
    all[1].lost_from = 12, all[1].lost_to = 13;
    all[0].lost_from = 11, all[0].lost_to = 12;
    EXPECT_EQ(standstill_sentence(*judge(all), find),
              "all ranks have waited for 20.0 s in a collective, in f0 (a.py:0): the network of "
              "rank 1 (local 1 on n1) is lost, since nothing that it sends is acknowledged");
}

TEST(StandstillSentence, AsksTheOddRanksAndOneMore) {
    EXPECT_THAT(worth_asking(*judge(ranks({in_collective, sleeps, sleeps, sleeps, sleeps}))),
                ElementsAre(1, 2, 3, 0));
    EXPECT_THAT(worth_asking(*judge(ranks({in_collective, in_collective}))), ElementsAre(0));
}

}  // namespace
}  // namespace ddprun::rendezvous
