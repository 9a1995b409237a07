// Succession as scripts of the rendezvous machine (PROTOCOL.md, rules 7 and 9 to 11): a service is
// dormant, becomes the leader, takes a generation over, or yields. "1: " before a line is the
// session. The lease is 10 s.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

Peer peer(const std::string& name) { return {node(name), "at " + name, 1}; }

// Entry 7: generation 4 of a and b, which a leader on node "old" has made. The job has had four
// restarts already. The numbers are above 0 so that no default fits by chance.
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

// Node c, no member. Its service becomes the leader at 0 and finds that entry. Each node's next
// Beat echoes the newest Ack of its session.
class Successor {
  public:
    Successor() : machine_(config(), at(0)) {
        EXPECT_THAT(step(0, Lead{peer("c")}), ElementsAre("read the ledger"));
        read_ = step(0, LedgerRead{{of_another()}});
    }
    // The ledger is shared, so other nodes may lead after this one.
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
    // A node comes on this session. By default it has vowed the generations up to 3 (of those
    // before 4), and has never heard another leader.
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
    // The ledger has taken the entry.
    Lines won(double now) {
        return step(now, LedgerCreated{LedgerCreated::Outcome::won, creating_, {}});
    }
    Machine machine_;
    LedgerEntry creating_;
    Lines read_;
    Marks marks_;  // in each Beat

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

// A node that has lost the leader calls here. The service names the leader only if its own node
// heard it in the last 5 s, because an older one may be the lost one. It also keeps a Gone: a proof
// stays true, and this node may have to lead next.
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
    // The leader was heard at 1, six seconds ago.
    EXPECT_THAT(lines(7, hello), ElementsAre("1: Elsewhere: wait", "1: closed"));
    EXPECT_THAT(lines(7, LeaderHeard{peer("old")}), IsEmpty());
    // An empty peer: this node has lost the leader as well.
    EXPECT_THAT(lines(7, LeaderHeard{}), IsEmpty());
    EXPECT_THAT(lines(7, hello), ElementsAre("1: Elsewhere: wait", "1: closed")) << "it is lost";
    EXPECT_THAT(lines(7, Came{Session{2}, Inquire{}}), ElementsAre("2: Standing: dormant"));
    EXPECT_THAT(lines(7, Came{Session{2}, AskOwners{1, {SocketEnds{}}}}),
                ElementsAre("2: look up 1 owners"));
    EXPECT_THAT(lines(8, Came{Session{2}, Gone{node("a")}}), IsEmpty());
    EXPECT_THAT(lines(9, Lead{peer("c")}), ElementsAre("read the ledger"));
    EXPECT_THAT(lines(9, LedgerRead{{of_another()}}),
                Contains("note: node a is lost; generation 4 ends"));
}

// The leader's host is lost, all members train on (rule 9). No worker has to stop. The new leader
// extends nothing before all have echoed an Ack that it sent after the takeover entry. Only then it
// is known that no member still follows the old leader.
TEST(Takeover, OfAGenerationThatAllItsMembersRun) {
    Successor s;
    s.join(0.1, 1, "a", 4);
    EXPECT_THAT(s.join(0.2, 2, "b", 4), Contains("create 8: takeover of generation 4 {a b}"));
    EXPECT_THAT(s.won(0.3), ElementsAre("note: generation 4 continues under this leader",
                                        "1: Ack holds 4", "2: Ack holds 4"));
    EXPECT_THAT(s.beats(0.4, 1, 4), IsEmpty());
    EXPECT_THAT(s.beats(0.5, 2, 4),
                ElementsAre("1: Ack holds 4, 7.9 s left", "2: Ack holds 4, 7.8 s left"));
    // The Acks were sent at 0.3.
    EXPECT_EQ(s.machine_.snapshot().held_until, at(8.3));
}

// A takeover stops no worker, so it is no restart and adds nothing to the sums. What the start of
// generation 4 took is counted in the entry of generation 5.
TEST(Takeover, RepeatsTheSumsOfRestarts) {
    Successor s;
    s.marks_ = {Generation{4}, {{RestartPhase::started, sec(9)}, {RestartPhase::contact, sec(7)}}};
    s.join(0.1, 1, "a", 4);
    s.join(0.2, 2, "b", 4);
    EXPECT_TRUE(s.creating_.takes_over());
    EXPECT_EQ(s.creating_.restart, (RestartRecord{{}, of_another().restart.totals}));
    EXPECT_EQ(s.creating_.restart.totals.restarts, 4);
}

// b runs the generation but does not hear the new leader. After 0.8 L the deadlines that the old
// leader granted have passed everywhere, so a longer wait gains nothing. 0.3 + 8 s.
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

// If one member has lost its workers, the others wait for it in collectives.
TEST(Takeover, NotOfOneThatAMemberDoesNotRun) {
    Successor s;
    s.join(0.1, 1, "a", 4);
    EXPECT_THAT(s.join(0.2, 2, "b", -1),
                Contains("note: node b does not run generation 4; generation 4 ends"));
}

// No member comes within 0.3 L, so the generation is over. But no member has said that its workers
// are gone: somewhere they may still train. A spare cannot know, however long it waits.
TEST(Successor, WithoutAnyMemberItIsOverButNotFollowed) {
    Successor s;
    EXPECT_THAT(s.step(2.9, Tick{}), Not(Contains(HasSubstr("generation 4 ends"))));
    EXPECT_THAT(s.step(3.1, Tick{}),
                Contains("note: no member of generation 4 has connected; generation 4 ends"));
    s.join(3.2, 3, "spare", -1, -1);
    s.beats(3.3, 3, -1, 4);
    EXPECT_THAT(s.beats(20, 3, -1, 4), Not(Contains(HasSubstr("create"))));
}

// Nobody else can come to a job of one node, so it says at once how long it waits, and why.
TEST(Successor, OfOneNodeSaysAtOnceThatItWaitsForAnEarlierRun) {
    MachineConfig config = rendezvous::Script::config(limits(1, 1));
    config.self = node("a", 2);
    Machine machine(config, at(0));
    LedgerEntry earlier = of_another();
    earlier.assignment = assignment(4, {node("a", 1)});
    earlier.at = peer("a");
    machine.step(at(0), Lead{peer("a")});
    machine.step(at(0), LedgerRead{{earlier}});
    machine.step(at(0.1), Came{Session{1}, Hello{"job", node("a", 2), "1", 0}});
    machine.step(at(0.1), Came{Session{1}, Join{offer(), Beat{.number = 1}}});
    const Lines said = rendezvous::Script::lines(machine.step(at(3.2), Tick{}));
    EXPECT_THAT(said, Contains(AllOf(HasSubstr("an earlier ddprun has begun generation 4 on a, "),
                                     HasSubstr("; this job waits for "),
                                     HasSubstr(" (--join-timeout) and then ends."))));
    const Beat vow{.number = 2, .floor = Generation{4}};
    machine.step(at(3.3), Came{Session{1}, vow});
    EXPECT_THAT(machine.status(at(4)).waiting_for, HasSubstr("an earlier ddprun"));
    EXPECT_THAT(rendezvous::Script::lines(machine.step(at(9), Tick{})), IsEmpty());
}

// Rule 7 (c): one member says in one Beat that it has vowed, and that it has heard no other leader
// for 1.0 L. Then the lease of that leader has passed everywhere. The check lies behind the 6 s for
// which absent members are waited for.
TEST(Successor, FollowsOnTheSilenceOfOneMember) {
    Successor s;
    s.join(0.1, 1, "a", -1, 4, sec(9.9));
    s.beats(0.2, 1, -1, 4, sec(9.95));
    EXPECT_THAT(s.beats(6.5, 1, -1, 4, sec(9.99)), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.beats(6.6, 1, -1, 4, sec(10)), Contains(HasSubstr("create 8: generation 5 {a}")));
}

// b was killed. Its keeper calls without a Hello, on the standby connection. Gone counts as much as
// a vow, so nobody has to wait for the lease.
TEST(Successor, TakesAKeepersLastWordForProof) {
    Successor s;
    s.join(0.1, 1, "a", -1, 4);
    EXPECT_THAT(s.beats(0.6, 1, -1, 4), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.come(0.7, 9, Gone{node("b")}), Contains(HasSubstr("create 8: generation 5 {a}")));
}

// Rule 11: after 0.2 L = 2 s the new leader asks the writer of the newest entry whether it still
// leads. It does and holds the generation. It was only cut off for a moment, so this leader sends
// its nodes back.
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

// Rule 11: a network file system may hang on one host only. After 1.5 L = 15 s without an answer,
// node a gets its turn.
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
    // Without this Beat a would count as silent, and could not be the next leader.
    machine.step(at(14), Came{Session{1}, Beat(first)});
    Lines all;
    for (const Effect& effect : machine.step(at(15.1), Tick{})) all.push_back(describe(effect));
    EXPECT_THAT(all, Contains("1: Elsewhere: at a"));
    EXPECT_EQ(machine.snapshot().phase, Phase::dormant);
}

namespace {

// Node c, whose ledger never answers, and a node a that could lead instead. The join timeout is
// 60 s, so the numbers stay small.
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

// There is nobody else to lead. Without the ledger nothing may start, so the job ends at the join
// timeout.
TEST(Successor, GivesUpWhereNoLedgerAnswersWithinTheJoinTimeout) {
    WithoutLedger s;
    s.lead(0);
    EXPECT_THAT(s.tick(59), IsEmpty());
    EXPECT_THAT(s.tick(61), Contains("closed with 69"));
}

// The user must see what was wrong with the ledger. It is logged once, and stands in the last line
// too.
TEST(Successor, EndsWithWhatTheLedgerLastSaid) {
    WithoutLedger s;
    s.lead(0);
    EXPECT_THAT(s.step(1, LedgerUnread{"folder deleted"}),
                ElementsAre("note: cannot read the ledger: folder deleted; trying again"));
    EXPECT_THAT(s.step(2, LedgerUnread{"folder deleted"}), IsEmpty());
    EXPECT_THAT(s.tick(61), Contains("note: the job has ended after 61.0 s, 0 generations, exit "
                                     "code 69: the ledger has been unavailable for "
                                     "61.0 s (--join-timeout): folder deleted"));
}

// The ledger answers no node, and two nodes lead in turn. Each yields after 15 s. If each
// activation began the count anew, the job would wait for ever.
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

// This node yielded at 16 and leads again at 200, long after. That is another silence of the
// ledger, so the join timeout counts from 200.
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

// At the end the leader waits up to one lease for absent members, so that they get the verdict. b
// has not come since this leader became active at 0, so the wait is over at 10, and not one lease
// after the end.
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

// This node has led before. The answer to a create of that time comes late. If it counted, the
// leader would take its open entry for written.
TEST(Successor, TakesNoEntryOfItsFormerSelfForItsOwn) {
    Successor s;
    s.join(0.1, 1, "a", -1, 4);
    s.come(0.2, 9, Gone{node("b")});
    s.beats(0.8, 1, -1, 4);
    LedgerEntry former = s.creating_;
    // A leader has a new incarnation in each activation.
    former.leader = node("c", 12345);
    EXPECT_THAT(s.step(0.9, LedgerCreated{LedgerCreated::Outcome::won, former, {}}), IsEmpty());
    EXPECT_THAT(s.won(1.0), Contains(HasSubstr("1: Assigned 5, node 0 of 1")));
}

namespace {

// Node c, which leads a new job. Its ledger has mark 7, and all nodes are to find it.
class Leader {
  public:
    explicit Leader(MachineConfig config) : machine_(std::move(config), at(0)) {
        machine_.step(at(0), Lead{peer("c"), "directory:/l/job", 7});
        machine_.step(at(0), LedgerRead{});
    }
    // What Hello and Join bring: to this node, and to the others. `mark` is what the node found; 0:
    // nothing.
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

// All messages of one kind in these effects, each with its session.
template <class Message>
std::vector<std::pair<int, Message>> sent(const Effects& effects) {
    std::vector<std::pair<int, Message>> all;
    for (const Effect& effect : effects)
        if (const auto* send = std::get_if<Send>(&effect))
            if (const auto* message = std::get_if<Message>(&send->message))
                all.emplace_back(send->session.value, *message);
    return all;
}

// The log lines that are printed without -v.
Lines notes(const Effects& effects) {
    Lines all;
    for (const Effect& effect : effects)
        if (const auto* note = std::get_if<Note>(&effect); note && note->level > Note::Level::debug)
            all.push_back(note->sentence);
    return all;
}

}  // namespace

// The Welcome names the ledger and its mark. While all nodes find it, another node may lead next.
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

// b does not find the ledger by its mark, for example because --ledger lies on a local disk. Two
// nodes could then lead with two ledgers. So nobody leads after this leader: the log names b and
// says what to do, all nodes get an empty order, and the standby connection ends. A second such
// node adds no line.
TEST(SharedLedger, Rule25d_ThatANodeDoesNotReadIsOneInMemory) {
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
    // A wrong mark is as good as none.
    const Effects later = leader.join(3, "d", 8, 3);
    EXPECT_THAT(notes(later), IsEmpty());
    EXPECT_THAT(sent<Welcome>(later).at(0).second.order, IsEmpty());
}

// The leader may be lost before there is any generation. The others can meet only if they know of
// each other. b was welcomed before a joined, so its Welcome could not name a.
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

// Without a shared ledger nobody leads after this leader, so nobody has to find it.
TEST(SharedLedger, IsNotAskedForWithoutSuccession) {
    MachineConfig config = Successor::config();
    config.succession = false;
    Leader leader(config);
    const Effects effects = leader.join(1, "a", 0);
    EXPECT_EQ(sent<Welcome>(effects).at(0).second.ledger_mark, 0u);
    EXPECT_THAT(notes(effects), IsEmpty());
}
