// How nodes get their ranks (PROTOCOL.md, rule 19). A pure function. Data on a host often belongs
// to its ranks, so ranks must not move between hosts at each restart.
#include "rendezvous/rules/rank_assignment.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;

namespace {

// "a:0 b:2": the nodes in the order of node ranks, each with the rank of its first worker.
std::string places(const std::vector<Member>& all) {
    std::string text;
    for (const Member& member : all)
        text +=
            (text.empty() ? "" : " ") + member.node.name + ":" + std::to_string(member.rank_offset);
    return text;
}

// Candidates with one slot each and no --node-rank.
std::vector<Candidate> come(const std::vector<std::string>& names) {
    std::vector<Candidate> all;
    for (const std::string& name : names) all.push_back({node(name), offer()});
    return all;
}

}  // namespace

// Hosts are numbered in the order of their racks. By plain text n10 would come before n2, and
// neighbours in the rack would not be neighbours by rank.
TEST(RankAssignment, ComparesNamesAsPeopleDo) {
    EXPECT_TRUE(natural_less("n2", "n10"));
    EXPECT_FALSE(natural_less("n10", "n2"));
    EXPECT_TRUE(natural_less("n", "n1"));
    EXPECT_TRUE(natural_less("rack1-n9", "rack2-n1"));
    EXPECT_TRUE(natural_less("gpu9a", "gpu10"));
    EXPECT_FALSE(natural_less("n1", "n1"));
    // Numbers of any length work: these two do not fit into 64 bits.
    EXPECT_FALSE(natural_less("n01", "n1"));
    EXPECT_TRUE(natural_less("n99999999999999999998", "n99999999999999999999"));
}

// Node rank comes first, then the given order (Slurm's list of nodes), then the name. Each of them
// counts only where the one before says nothing.
TEST(RankAssignment, OrdersTheFirstTimeByNodeRankThenListThenName) {
    EXPECT_EQ(places(assign_ranks(come({"n10", "n2", "n1"}), {}, {}, 3)), "n1:0 n2:1 n10:2");
    EXPECT_EQ(places(assign_ranks(come({"n1", "n2", "n3"}), {}, {"n3", "n1", "n2"}, 3)),
              "n3:0 n1:1 n2:2");
    EXPECT_EQ(
        places(assign_ranks(
            // c stands first in the list, but a and b have node ranks.
            {{node("a"), offer_of_rank(1)}, {node("b"), offer_of_rank(0)}, {node("c"), offer()}},
            {}, {"c", "a", "b"}, 3)),
        "b:0 a:1 c:2");
}

// Three hosts with two tasks each, and room for four tasks. Tasks come one by one. A host of which
// one task is missing is left out, so that no host is half member and half spare.
TEST(RankAssignment, TakesHostsWhole) {
    const std::vector<std::string> order{"a/0", "a/1", "b/0", "b/1", "c/0", "c/1"};
    const auto chosen = [&](const std::vector<std::string>& names, int most) {
        std::string text;
        for (const Candidate& each : of_whole_hosts(come(names), order, most))
            text += each.node.name + " ";
        return text;
    };
    EXPECT_EQ(chosen({"a/0", "a/1", "b/0", "c/1"}, 4), "a/0 a/1 ");
    EXPECT_EQ(chosen({"a/0", "a/1", "b/0", "c/1", "c/0"}, 4), "a/0 a/1 c/1 c/0 ");
    EXPECT_EQ(chosen({"a/0", "b/0"}, 6), "a/0 b/0 ") << "there are no spares";
    // Without tasks each node is a whole host.
    EXPECT_EQ(of_whole_hosts(come({"a"}), {"a", "b"}, 1).size(), 1u);
}

TEST(RankAssignment, Rule19e_GivesEachNodeAsManyRanksAsSlots) {
    EXPECT_EQ(
        places(assign_ranks({{node("a"), offer(4)}, {node("b"), offer(2)}, {node("c"), offer(8)}},
                            {}, {}, 3)),
        "a:0 b:4 c:6");
}

// b is lost and the spare d is there. d gets b's rank, and nobody else moves.
TEST(RankAssignment, Rule19c_PutsAReplacementIntoTheFreePlace) {
    EXPECT_EQ(places(assign_ranks(come({"a", "c", "d"}), members({node("a"), node("b"), node("c")}),
                                  {}, 3)),
              "a:0 d:1 c:2");
}

// b's ddprun has died and a new one has come. The spare aa stands before b in the alphabet, but b's
// data lies on b's host.
TEST(RankAssignment, PrefersANewProcessOfTheSameNode) {
    const std::vector<Candidate> here{
        {node("a"), offer()}, {node("aa"), offer()}, {node("b", 2), offer()}};
    const auto next = assign_ranks(here, members({node("a"), node("b")}), {}, 2);
    EXPECT_EQ(places(next), "a:0 b:1");
    EXPECT_EQ(next[1].node.incarnation, Incarnation{2});
}

// b is lost and nobody replaces it. The ranks close the gap; the order d, c, a stays.
TEST(RankAssignment, Rule19d_KeepsTheOrderWhenTheWorldShrinks) {
    EXPECT_EQ(places(assign_ranks(come({"a", "d", "c"}),
                                  members({node("d"), node("b"), node("c"), node("a")}), {}, 4)),
              "d:0 c:1 a:2");
}

// m was the only member. The new nodes come behind it, though a and b stand before m in the
// alphabet.
TEST(RankAssignment, AppendsNewNodesWhenTheWorldGrows) {
    EXPECT_EQ(places(assign_ranks(come({"a", "b", "m"}), members({node("m")}), {}, 3)),
              "m:0 a:1 b:2");
}

// There are two places only. y and z were members and stay, although a and b stand before them in
// the alphabet.
TEST(RankAssignment, LeavesSparesOut) {
    EXPECT_EQ(
        places(assign_ranks(come({"a", "b", "y", "z"}), members({node("y"), node("z")}), {}, 2)),
        "y:0 z:1");
    EXPECT_EQ(places(assign_ranks(come({"a", "b", "c"}), {}, {}, 2)), "a:0 b:1");
    EXPECT_EQ(
        places(assign_ranks(come({"a", "c"}), members({node("a"), node("b"), node("c")}), {}, 1)),
        "a:0");
}

// Nodes may have different numbers of workers: 3 + 2.
TEST(RankAssignment, WorldSize) {
    auto all = members({node("a"), node("b")}, 3);
    all.back().offer.slots = 2;
    EXPECT_EQ(world_size(all), 5);
}
