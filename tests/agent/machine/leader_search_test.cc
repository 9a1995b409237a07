// The agent machine when its leader is lost: which node it calls, and when it leads itself
// (rendezvous/PROTOCOL.md, rule 10). The lease is 10 s, so a call has 1.5 s (0.15 L).
#include "tests/agent/machine/machine_script.h"

namespace ddprun::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

rendezvous::Peer peer(const std::string& name) { return {node(name), "at " + name, 1}; }

// Node b of the order a, b, c. a leads (its activation has incarnation 77). Up to three nodes take
// part, so there are Beats; they are left out of the lines.
class Follower {
  public:
    Follower()
        : machine_({.run_id = "job",
                    .node = node("b"),
                    .offer = offer(1),
                    .requeue = 0,
                    .version = "1",
                    .may_lead = true},
                   at(0)) {
        step(0, Started{});
        told(0, rendezvous::Welcome{
                    node("a", 77), {}, {peer("a"), peer("b"), peer("c")}, 3, peer("a"), {}});
    }
    Lines step(double now, const Event& event) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), event)) all.push_back(describe(effect));
        return but_beats(all);
    }
    Lines told(double now, const rendezvous::ToNode& message) {
        return step(now, MessageCame{message});
    }
    // An Ack: the leader holds generation 0, which entry 3 has made.
    Lines holds(double now) {
        rendezvous::Ack ack;
        ack.number = ++acks_;
        ack.entry = EntryNumber{3};
        ack.held = g0;
        return told(now, ack);
    }

  private:
    Machine machine_;
    std::int64_t acks_ = 0;
};

// b has found the leader's ledger by its mark, so it may lead, even before there is a generation.
// It calls a once more, since a broken connection proves nothing. a refuses, so b leads.
TEST(Succession, CallsTheLostLeaderThenLeads) {
    Follower b;
    EXPECT_THAT(b.step(0, LedgerFound{true}), ElementsAre(HasSubstr("can take over")));
    EXPECT_THAT(b.step(0, LedgerFound{true}), IsEmpty()) << "said once";
    // "heard " without a name: b's own service must not send callers to a any more.
    EXPECT_THAT(b.step(3, LinkLost{"reset"}), ElementsAre(HasSubstr("is lost: reset"), "heard ",
                                                          "connect at a once until 4.5 s"));
    EXPECT_THAT(
        b.step(3.1, LinkLost{"refused"}),
        ElementsAre(HasSubstr("this node leads now"), "lead", "connect self once until 4.6 s"));
}

// The order of the Welcome is old: c was lost since. The order in the Assigned is the newest one,
// and all nodes must call in the same order.
TEST(Succession, KnowsTheOrderThatCameWithItsPlace) {
    Follower b;
    b.holds(1);
    b.step(2, LedgerFound{true});
    rendezvous::NodePlace second = first_of_two(0);
    second.node_rank = second.rank_offset = 1;
    b.told(2, rendezvous::Assigned{EntryNumber{3}, second, 1, sec(8), {peer("d"), peer("b")}});
    b.step(3, LinkLost{"reset"});
    EXPECT_THAT(b.step(3.1, LinkLost{"refused"}), ElementsAre("connect at d once until 4.6 s"));
    EXPECT_THAT(
        b.step(3.2, LinkLost{"refused"}),
        ElementsAre(HasSubstr("this node leads now"), "lead", "connect self once until 4.7 s"));
}

// Some node does not read the leader's ledger, so nobody may lead after it (an empty order in
// Parked). Only the same leader can come back, for 2 L = 20 s.
TEST(Succession, EndsWhenTheOrderIsVoid) {
    Follower b;
    b.holds(1);
    b.step(2, LedgerFound{true});
    EXPECT_THAT(b.told(2, rendezvous::Parked{}), IsEmpty());
    EXPECT_THAT(b.step(3, LinkLost{"reset"}),
                ElementsAre(HasSubstr("is lost: reset"), "connect until 23.0 s"));
    EXPECT_EQ(b.step(23, LinkLost{"nobody"}).back(), "exit 69");
}

// b has not found the ledger, so it must not lead. It calls the others in turn, and any address
// that a service sends it to.
TEST(Succession, FollowsWhereItMayNotLead) {
    Follower b;
    EXPECT_THAT(b.step(3, LinkLost{"reset"}), ElementsAre(HasSubstr("is lost: reset"), "heard ",
                                                          "connect at a once until 4.5 s"));
    EXPECT_THAT(b.step(3.1, LinkLost{"refused"}), ElementsAre("connect at c once until 4.6 s"));
    EXPECT_THAT(b.told(3.2, rendezvous::Elsewhere{"at d", 1, {}}),
                ElementsAre("connect at d once until 4.7 s"));
    EXPECT_THAT(b.told(3.3, rendezvous::Elsewhere{}), IsEmpty()) << "wait";
    EXPECT_THAT(b.step(3.5, Tick{}), ElementsAre("connect at d once until 4.7 s"));
    // The port belongs to another job by now. That must not end this job, so the search goes on.
    EXPECT_THAT(b.told(3.6, rendezvous::Refused{"another run"}), IsEmpty())
        << "a stranger on that port is passed over";
    EXPECT_THAT(b.step(3.8, Tick{}), ElementsAre("connect at a once until 5.3 s"));
}

}  // namespace
}  // namespace ddprun::agent
