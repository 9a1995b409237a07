// Which services a leader without a generation asks whether they lead (PROTOCOL.md, rule 11). Pure.
// The lease is 10 s, so a round comes each 2 s (0.2 L).
#include "rendezvous/parts/inquiries.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using testing::ElementsAre;

constexpr Duration kInquiryLease = std::chrono::seconds{10};

Peer asked_peer(const std::string& name) { return {node(name), "at " + name, 1}; }
std::vector<std::string> names(const std::vector<Peer>& peers) {
    std::vector<std::string> all;
    for (const Peer& each : peers) all.push_back(each.node.name);
    return all;
}
bool anybody(const Peer&) { return true; }

// w wrote the newest entry and stands in the order as well. It is called once.
TEST(Inquiries, GoToTheWriterAndToThoseBefore) {
    Inquiries inquiries;
    inquiries.begin(at(0), kInquiryLease);
    EXPECT_EQ(inquiries.next_round(), at(2));
    EXPECT_THAT(names(inquiries.round(at(2), kInquiryLease, asked_peer("w"),
                                      {asked_peer("a"), asked_peer("w")}, anybody)),
                ElementsAre("w", "a"))
        << "each is asked once";
    EXPECT_EQ(inquiries.next_round(), at(4));
    EXPECT_EQ(inquiries.asked(node("a")), asked_peer("a"));
    EXPECT_FALSE(inquiries.asked(node("b")));
}

// In a large job many nodes stand before this one. One round calls at most eight of them, so that
// it does not open a thousand connections. The rounds go on where the last one ended.
TEST(Inquiries, GoAroundWhereManyStandBefore) {
    std::vector<Peer> before;
    for (char name = 'a'; name < 'a' + 10; ++name)
        before.push_back(asked_peer(std::string(1, name)));
    Inquiries inquiries;
    EXPECT_THAT(names(inquiries.round(at(0), kInquiryLease, std::nullopt, before, anybody)),
                ElementsAre("a", "b", "c", "d", "e", "f", "g", "h"));
    EXPECT_THAT(names(inquiries.round(at(2), kInquiryLease, std::nullopt, before, anybody)),
                ElementsAre("i", "j", "a", "b", "c", "d", "e", "f"));
    EXPECT_FALSE(inquiries.asked(node("g"))) << "a late answer of the round before does not count";
}

// b is proven gone or has no port. A call would only cost time.
TEST(Inquiries, PassOverWhoMayNotBeCalled) {
    Inquiries inquiries;
    const auto not_b = [](const Peer& each) { return each.node.name != "b"; };
    EXPECT_THAT(names(inquiries.round(at(0), kInquiryLease, asked_peer("b"),
                                      {asked_peer("a"), asked_peer("b")}, not_b)),
                ElementsAre("a"));
}

}  // namespace
}  // namespace ddprun::rendezvous
