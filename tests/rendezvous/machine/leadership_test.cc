// Succession as scripts of the machine: dormant, active, taking over, yielding. "1: " before a line
// is the session. The lease is 10 s.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

Peer peer(const std::string& name) { return {node(name), "at " + name, 1}; }

// Generation 4 of a and b, made by a leader on node "old".
LedgerEntry of_another() {
    LedgerEntry entry;
    entry.number = EntryNumber{7};
    entry.leader = node("old", 99);
    entry.at = peer("old");
    entry.assignment = assignment(4, {node("a"), node("b")});
    for (Member& member : entry.assignment.members) {
        member.offer.address = "at " + member.node.name;
        member.offer.service_port = 1;
    }
    entry.restart.totals.restarts = 4;
    entry.restart.totals.took[0] = sec(2);
    return entry;
}

// A node c whose service becomes the leader at 0 and finds that entry.
class Successor {
  public:
    Successor() : machine_(config(), at(0)) {
        EXPECT_THAT(step(0, Lead{peer("c")}), ElementsAre("read the ledger"));
        read_ = step(0, LedgerRead{{of_another()}});
    }
    static MachineConfig config() {
        MachineConfig c = rendezvous::Script::config(limits(1, 3));
        c.self = node("c");
        c.succession = true;
        return c;
    }
    Lines step(double now, const Event& event) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), event)) {
            if (const auto* e = std::get_if<CreateEntry>(&effect)) creating_ = e->entry;
            const auto* sent = std::get_if<Send>(&effect);
            if (const auto* ack = sent ? std::get_if<Ack>(&sent->message) : nullptr)
                echo_[sent->session.value] = ack->number;
            all.push_back(describe(effect));
        }
        return all;
    }
    Lines come(double now, int session, const ToLeader& message) {
        return step(now, Came{Session{session}, message});
    }
    Lines join(double now, int session, const std::string& name, int running, int floor = 3,
               Duration silent = Duration::max()) {
        Lines all = come(now, session, Hello{"job", node(name), "1", 0});
        for (const std::string& line :
             come(now, session, Join{offer(), beat(session, running, floor, silent)}))
            all.push_back(line);
        return all;
    }
    Lines beats(double now, int session, int running, int floor = 3,
                Duration silent = Duration::max()) {
        return come(now, session, beat(session, running, floor, silent));
    }
    Lines won(double now) {
        return step(now, LedgerCreated{LedgerCreated::Outcome::won, creating_, {}});
    }
    Machine machine_;
    LedgerEntry creating_;
    Lines read_;
    Marks marks_;  // of each beat

  private:
    Beat beat(int session, int running, int floor, Duration silent) {
        Beat b;
        b.number = ++number_;
        b.echo = echo_[session];
        b.running = Generation{running};
        b.floor = Generation{floor};
        b.seen = EntryNumber{7};
        b.silent = silent;
        b.marks = marks_;
        return b;
    }
    std::int64_t number_ = 0;
    std::map<std::int64_t, std::int64_t> echo_;
};

}  // namespace

// A dormant service sends callers on, answers Inquire, and remembers a keeper's last word.
TEST(Dormant, SendsCallersToTheLeaderItsNodeHears) {
    Machine machine(Successor::config(), at(0));
    const auto lines = [&](double now, const Event& event) {
        Lines all;
        for (const Effect& effect : machine.step(at(now), event)) all.push_back(describe(effect));
        return all;
    };
    const Came hello{Session{1}, Hello{"job", node("a"), "1", 0}};
    EXPECT_THAT(lines(0, hello), ElementsAre("1: Elsewhere: wait", "1: closed"));
    EXPECT_THAT(lines(1, LeaderHeard{peer("old")}), IsEmpty());
    EXPECT_THAT(lines(2, hello), ElementsAre("1: Elsewhere: at old", "1: closed"));
    EXPECT_THAT(lines(7, hello), ElementsAre("1: Elsewhere: wait", "1: closed"));
    EXPECT_THAT(lines(7, LeaderHeard{peer("old")}), IsEmpty());
    EXPECT_THAT(lines(7, LeaderHeard{}), IsEmpty());
    EXPECT_THAT(lines(7, hello), ElementsAre("1: Elsewhere: wait", "1: closed")) << "it is lost";
    EXPECT_THAT(lines(7, Came{Session{2}, Inquire{}}), ElementsAre("2: Standing: dormant"));
    EXPECT_THAT(lines(8, Came{Session{2}, Gone{node("a")}}), IsEmpty());
    EXPECT_THAT(lines(9, Lead{peer("c")}), ElementsAre("read the ledger"));
    EXPECT_THAT(lines(9, LedgerRead{{of_another()}}),
                Contains("note: node a is lost; generation 4 ends"));
}

// Rule 9: all members come and run it. Nothing is granted before all have echoed an Ack of after
// the entry; then all hear it at once.
TEST(Takeover, OfAGenerationThatAllItsMembersRun) {
    Successor s;
    s.join(0.1, 1, "a", 4);
    EXPECT_THAT(s.join(0.2, 2, "b", 4), Contains("create 8: takeover of generation 4 {a b}"));
    EXPECT_THAT(s.won(0.3), ElementsAre("note: generation 4 continues under this leader",
                                        "1: Ack holds 4", "2: Ack holds 4"));
    EXPECT_THAT(s.beats(0.4, 1, 4), IsEmpty());
    EXPECT_THAT(s.beats(0.5, 2, 4),
                ElementsAre("1: Ack holds 4, 7.9 s left", "2: Ack holds 4, 7.8 s left"));
    EXPECT_EQ(s.machine_.snapshot().held_until, at(8.3));
}

// A takeover repeats the sums of restarts and adds nothing: its generation goes on, and what its
// start took stands in the entry that follows.
TEST(Takeover, RepeatsTheSumsOfRestarts) {
    Successor s;
    s.marks_ = {Generation{4}, {{RestartPhase::started, sec(9)}, {RestartPhase::contact, sec(7)}}};
    s.join(0.1, 1, "a", 4);
    s.join(0.2, 2, "b", 4);
    EXPECT_TRUE(s.creating_.takes_over());
    EXPECT_EQ(s.creating_.restart, (RestartRecord{{}, of_another().restart.totals}));
    EXPECT_EQ(s.creating_.restart.totals.restarts, 4);
}

TEST(Takeover, EndsWhenTheEchoesTakeTooLong) {
    Successor s;
    s.join(0.1, 1, "a", 4);
    s.join(0.2, 2, "b", 4);
    s.won(0.3);
    s.beats(0.4, 1, 4);
    EXPECT_THAT(s.step(8.3, Tick{}), Not(Contains(HasSubstr("ends"))));
    EXPECT_THAT(s.step(8.31, Tick{}),
                Contains("note: not all nodes answered the takeover in time; generation 4 ends"));
}

TEST(Takeover, NotOfOneThatAMemberDoesNotRun) {
    Successor s;
    s.join(0.1, 1, "a", 4);
    EXPECT_THAT(s.join(0.2, 2, "b", -1),
                Contains("note: node b does not run generation 4; generation 4 ends"));
}

// Nobody comes: over after 0.3 lease; but that alone gives no right to follow it.
TEST(Successor, WithoutAnyMemberItIsOverButNotFollowed) {
    Successor s;
    EXPECT_THAT(s.step(2.9, Tick{}), Not(Contains(HasSubstr("generation 4 ends"))));
    EXPECT_THAT(s.step(3.1, Tick{}),
                Contains("note: no member of generation 4 has connected; generation 4 ends"));
    s.join(3.2, 3, "spare", -1, -1);
    s.beats(3.3, 3, -1, 4);
    EXPECT_THAT(s.beats(20, 3, -1, 4), Not(Contains(HasSubstr("create"))));
}

// Rule 7 (c): one member, with floor and a silence of a lease in one Beat, is enough.
TEST(Successor, FollowsOnTheSilenceOfOneMember) {
    Successor s;
    s.join(0.1, 1, "a", -1, 4, sec(9.9));
    s.beats(0.2, 1, -1, 4, sec(9.95));
    EXPECT_THAT(s.beats(6.5, 1, -1, 4, sec(9.99)), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.beats(6.6, 1, -1, 4, sec(10)), Contains(HasSubstr("create 8: generation 5 {a}")));
}

// A keeper's last word counts as a floor would.
TEST(Successor, TakesAKeepersLastWordForProof) {
    Successor s;
    s.join(0.1, 1, "a", -1, 4);
    EXPECT_THAT(s.beats(0.6, 1, -1, 4), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.come(0.7, 9, Gone{node("b")}), Contains(HasSubstr("create 8: generation 5 {a}")));
}

// Rule 11: it asks who wrote the newest entry, and yields to one that holds a generation.
TEST(Successor, YieldsToAHolder) {
    Successor s;
    s.join(0.1, 1, "spare", -1, -1);
    EXPECT_THAT(s.step(2, Tick{}), Contains("call old"));
    EXPECT_THAT(
        s.step(2.1, Called{node("old"), {node("old"), true, Generation{4}, EntryNumber{7}}}),
        ElementsAre("note: another leader has answered; this node stops leading; old leads now",
                    "1: Elsewhere: at old", "1: closed"));
    EXPECT_EQ(s.machine_.snapshot().phase, Phase::dormant);
}

// Rule 11: a ledger that has said nothing for 1.5 leases; the own node rests.
TEST(Successor, LetsAnotherTryWhenItsLedgerIsSilent) {
    Machine machine(Successor::config(), at(0));
    machine.step(at(0), Lead{peer("c")});
    machine.step(at(1), Came{Session{1}, Hello{"job", node("a"), "1", 0}});
    Offer of_a = offer();
    of_a.address = "at a";
    of_a.service_port = 1;
    Beat first;
    first.number = 1;
    machine.step(at(1), Came{Session{1}, Join{of_a, first}});
    first.number = 2;
    machine.step(at(14), Came{Session{1}, Beat(first)});
    Lines all;
    for (const Effect& effect : machine.step(at(15.1), Tick{})) all.push_back(describe(effect));
    EXPECT_THAT(all, Contains("1: Elsewhere: at a"));
    EXPECT_EQ(machine.snapshot().phase, Phase::dormant);
}

namespace {

// A node c whose ledger never answers, and a node a that could lead instead.
class WithoutLedger {
  public:
    WithoutLedger() : machine_(config(), at(0)) {}
    static MachineConfig config() {
        MachineConfig c = Successor::config();
        c.limits.times.join_timeout = sec(60);
        return c;
    }
    void lead(double now) { machine_.step(at(now), Lead{peer("c")}); }
    void a_comes(double now) {
        Offer of_a = offer();
        of_a.address = "at a";
        of_a.service_port = 1;
        machine_.step(at(now), Came{Session{1}, Hello{"job", node("a"), "1", 0}});
        machine_.step(at(now), Came{Session{1}, Join{of_a, Beat{}}});
    }
    Lines step(double now, const Event& event) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), event)) all.push_back(describe(effect));
        return all;
    }
    Lines tick(double now) { return step(now, Tick{}); }
    Phase phase() const { return machine_.snapshot().phase; }

  private:
    Machine machine_;
};

}  // namespace

TEST(Successor, GivesUpWhereNoLedgerAnswersWithinTheJoinTimeout) {
    WithoutLedger s;
    s.lead(0);
    EXPECT_THAT(s.tick(59), IsEmpty());
    EXPECT_THAT(s.tick(61), Contains("closed with 69"));
}

TEST(Successor, EndsWithWhatTheLedgerLastSaid) {
    WithoutLedger s;
    s.lead(0);
    EXPECT_THAT(s.step(1, LedgerUnread{"folder deleted"}),
                ElementsAre("note: cannot read the ledger: folder deleted; trying again"));
    EXPECT_THAT(s.step(2, LedgerUnread{"folder deleted"}), IsEmpty());
    EXPECT_THAT(s.tick(61), Contains("note: the job has ended: the ledger has been unavailable for "
                                     "61.0 s (--join-timeout): folder deleted"));
}

// As good as never, when two lead in turn: what each of them waits does not begin anew.
TEST(Successor, GivesUpThoughAnotherTriesInTurn) {
    WithoutLedger s;
    for (const double turn : {0, 20, 40}) {
        s.lead(turn);
        s.a_comes(turn + 1);
        s.tick(turn + 16);
        EXPECT_EQ(s.phase(), Phase::dormant) << turn;
    }
    s.lead(60);
    EXPECT_THAT(s.tick(61), Contains("closed with 69"));
}

// A silence of long ago says nothing of the ledger now.
TEST(Successor, HasTheWholeJoinTimeoutAfterALongRest) {
    WithoutLedger s;
    s.lead(0);
    s.a_comes(1);
    s.tick(16);
    s.lead(200);
    EXPECT_THAT(s.tick(259), IsEmpty());
    EXPECT_EQ(s.phase(), Phase::reading);
    EXPECT_THAT(s.tick(261), Contains("closed with 69"));
}

// b has been away for as long as this leader leads: it gets no further lease to hear the end.
TEST(Successor, DoesNotWaitAtTheEndForOneThatHasBeenAwayForALease) {
    Successor s;
    s.join(0.1, 1, "a", -1, 4, sec(1));
    s.come(0.2, 1, StopAsked{15, "signal 15"});
    s.beats(5, 1, -1, 4, sec(6));
    EXPECT_THAT(s.beats(9.5, 1, -1, 4, sec(10.4)), Contains(HasSubstr("create 8: end 143")));
    EXPECT_THAT(s.won(9.6), Not(Contains(HasSubstr("closed"))));
    EXPECT_EQ(s.machine_.next_deadline(), at(10));
    EXPECT_THAT(s.step(10, Tick{}), Contains("closed with 143"));
}

// An answer to an earlier activation's create is none to this one's.
TEST(Successor, TakesNoEntryOfItsFormerSelfForItsOwn) {
    Successor s;
    s.join(0.1, 1, "a", -1, 4);
    s.come(0.2, 9, Gone{node("b")});
    s.beats(0.8, 1, -1, 4);
    LedgerEntry former = s.creating_;
    former.leader = node("c", 12345);
    EXPECT_THAT(s.step(0.9, LedgerCreated{LedgerCreated::Outcome::won, former, {}}), IsEmpty());
    EXPECT_THAT(s.won(1.0), Contains(HasSubstr("1: Assigned 5, node 0 of 1")));
}

namespace {

// A leader c of a new job, with a ledger of mark 7 that all nodes are to find.
class Leader {
  public:
    explicit Leader(MachineConfig config) : machine_(std::move(config), at(0)) {
        machine_.step(at(0), Lead{peer("c"), "directory:/l/job", 7});
        machine_.step(at(0), LedgerRead{});
    }
    // What a node is told from its Hello to its Join, and what the others are.
    Effects join(int session, const std::string& name, std::uint64_t mark, double now = 1) {
        Effects all = hello(session, name, now);
        Offer where = offer();
        where.address = "at " + name;
        where.service_port = 1;
        for (Effect& effect :
             machine_.step(at(now), Came{Session{session}, Join{where, Beat{}, mark}}))
            all.push_back(std::move(effect));
        return all;
    }
    Effects hello(int session, const std::string& name, double now = 1) {
        return machine_.step(at(now), Came{Session{session}, Hello{"job", node(name), "1", 0}});
    }
    Effects tick(double now) { return machine_.step(at(now), Tick{}); }

  private:
    Machine machine_;
};

template <class Message>
std::vector<std::pair<int, Message>> sent(const Effects& effects) {
    std::vector<std::pair<int, Message>> all;
    for (const Effect& effect : effects)
        if (const auto* send = std::get_if<Send>(&effect))
            if (const auto* message = std::get_if<Message>(&send->message))
                all.emplace_back(send->session.value, *message);
    return all;
}

// What is said without -v.
Lines notes(const Effects& effects) {
    Lines all;
    for (const Effect& effect : effects)
        if (const auto* note = std::get_if<Note>(&effect); note && note->level > Note::Level::debug)
            all.push_back(note->sentence);
    return all;
}

}  // namespace

// The Welcome names the leader's ledger; while all find it, there is an order.
TEST(SharedLedger, IsNamedAndHasAnOrder) {
    Leader leader(Successor::config());
    const Effects effects = leader.join(1, "a", 7);
    const auto welcomes = sent<Welcome>(effects);
    ASSERT_EQ(welcomes.size(), 1u);
    EXPECT_EQ(welcomes[0].second.ledger, "directory:/l/job");
    EXPECT_EQ(welcomes[0].second.ledger_mark, 7u);
    EXPECT_THAT(welcomes[0].second.order, ElementsAre(peer("c")));
    EXPECT_THAT(notes(effects), IsEmpty());
    EXPECT_THAT(notes(leader.join(2, "c", 0)), IsEmpty()) << "the leader's own node";
}

// The first node that does not find it ends the succession: it is named, all hear that the order is
// void, and the keeper of the leader has nobody to speak to. The next one changes nothing.
TEST(SharedLedger, ThatANodeDoesNotReadIsOneInMemory) {
    Leader leader(Successor::config());
    leader.join(1, "a", 7);
    EXPECT_TRUE(testing::Value(leader.tick(3), Contains(Effect(Standby{peer("a")}))));
    const Effects effects = leader.join(2, "b", 0, 3);
    EXPECT_THAT(notes(effects),
                ElementsAre(testing::AllOf(
                    testing::StartsWith("node b cannot find the ledger of node c "
                                        "(directory:/l/job), "),
                    HasSubstr("the loss of the leader's node will end the job; give all nodes "
                              "--ledger="))));
    const auto parked = sent<Parked>(effects);
    ASSERT_EQ(parked.size(), 2u);
    for (const auto& [session, message] : parked) EXPECT_THAT(message.order, IsEmpty()) << session;
    EXPECT_TRUE(testing::Value(effects, Contains(Effect(Standby{std::nullopt}))));
    const Effects later = leader.join(3, "d", 8, 3);
    EXPECT_THAT(notes(later), IsEmpty());
    EXPECT_THAT(sent<Welcome>(later).at(0).second.order, IsEmpty());
}

// Should the leader be lost before there is a generation, the others must know of each other: also
// those that were welcomed before anybody had joined.
TEST(SharedLedger, WhoJoinsHearsWhoHasComeBefore) {
    Leader leader(Successor::config());
    const auto welcomes = sent<Welcome>(leader.hello(2, "b"));
    EXPECT_THAT(welcomes.at(0).second.order, ElementsAre(peer("c")));
    const auto first = sent<Parked>(leader.join(1, "a", 7));
    ASSERT_EQ(first.size(), 1u);
    EXPECT_THAT(first[0].second.order, ElementsAre(peer("c"), peer("a")));
    const auto second = sent<Parked>(leader.join(2, "b", 7));
    ASSERT_EQ(second.size(), 2u) << "and who stands there hears of it";
    for (const auto& [session, message] : second)
        EXPECT_THAT(message.order, ElementsAre(peer("c"), peer("a"), peer("b"))) << session;
}

// Where nobody leads after the leader, nobody has to read its ledger.
TEST(SharedLedger, IsNotAskedForWithoutSuccession) {
    MachineConfig config = Successor::config();
    config.succession = false;
    Leader leader(config);
    const Effects effects = leader.join(1, "a", 0);
    EXPECT_EQ(sent<Welcome>(effects).at(0).second.ledger_mark, 0u);
    EXPECT_THAT(notes(effects), IsEmpty());
}
