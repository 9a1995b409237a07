// The rendezvous machine as scripts (machine_test.cc): another writes the ledger, too, or it fails,
// has ended, or is not the one that a node knows.
#include "rendezvous/machine.h"

#include <gmock/gmock.h>

#include "tests/rendezvous/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Another leader was first: its entry is the newest; a and b, who are here, do not run what it
// says, so that it is over, and the next number follows it.
TEST(Machine, EntryLostToAnotherWriterIsAdopted) {
    Script s(limits(2, 2));
    s.both_are_there();
    LedgerEntry theirs = s.creating();
    theirs.leader = node("rival");
    EXPECT_THAT(s.step(0.6, LedgerCreated{LedgerCreated::Outcome::lost, theirs, {}}),
                ElementsAre("note: ledger entry 0 was written by rival; it is adopted", "1: Ack",
                            "2: Ack", "note: node a does not run generation 0; generation 0 ends",
                            "1: Ack over 0", "2: Ack over 0"));
    s.vows(0.7, 1, 0);
    EXPECT_THAT(s.vows(0.7, 2, 0), ElementsAre("2: Ack over 0",
                                               "create 1: generation 1 {a b} after node a does not "
                                               "run generation 0"));
}

// The ledger fails: tried again each 0.1 lease, given up after the join timeout, and everyone is
// told.
TEST(Machine, FailingLedgerIsTriedAgainThenGivenUp) {
    Limits two = limits(2, 2);
    two.times.join_timeout = sec(3);
    Script s(two);
    s.both_are_there();
    const auto failed = LedgerCreated::Outcome::failed;
    EXPECT_THAT(s.created(0.6, failed), ElementsAre("note: ledger: disk full; trying again"));
    EXPECT_EQ(s.next(), at(1.6));
    EXPECT_THAT(s.tick(1.5), IsEmpty());
    EXPECT_THAT(s.tick(1.6), ElementsAre("create 0: generation 0 {a b} after start"));
    EXPECT_THAT(
        s.created(3.7, failed),
        ElementsAre("note: the job has ended: ledger: disk full, for 3.1 s (--join-timeout)",
                    "1: Finished 69", "2: Finished 69", "closed with 69"));
}

// The ledger already holds the end: whoever comes is told, and nothing is written.
TEST(Machine, ClosedLedgerTellsTheEnd) {
    Machine machine(Script::config(limits(2, 2)), at(0));
    LedgerEntry end;
    end.number = EntryNumber{4};
    end.kind = LedgerEntry::Kind::end;
    end.ending = ending(Verdict::worker_failed, 3, "no restart");
    machine.step(at(0), Lead{{node("leader"), "leader", 1}});
    const Effects effects = machine.step(at(0), LedgerRead{{end}});
    EXPECT_EQ(describe(effects.back()), "closed with 3");
    EXPECT_EQ(machine.snapshot().phase, Phase::closed);
}

// A leader that knows less of its ledger than a node looks again. What lay in memory has gone with
// the process that held it; the node would wait for an entry that never comes.
TEST(Machine, LooksAgainWhenANodeKnowsMoreOfTheLedger) {
    MachineConfig config = Script::config(limits(2, 2));
    config.succession = true;
    Script s(config);
    s.join(0, 1, node("a"));
    EXPECT_THAT(s.has_seen(0.5, 1, 0), Contains("read the ledger"));
}

TEST(Machine, RefusesANodeOfALedgerThatIsLost) {
    Script s(limits(2, 2));
    s.join(0, 1, node("a"));
    s.join(0, 2, node("b"));
    EXPECT_THAT(s.has_seen(0.5, 1, 0),
                ElementsAre(HasSubstr("note: refused a node: node a has heard of entry 0"),
                            HasSubstr("1: Refused"), "1: closed"));
    EXPECT_THAT(s.beat(0.6, 2), ElementsAre(HasSubstr("2: Ack"))) << "it does not count as here";
    EXPECT_THAT(s.beat(0.7, 2), ElementsAre(HasSubstr("2: Ack")));
}
