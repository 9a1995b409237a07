// The rendezvous machine as scripts (machine_test.cc): another writes the ledger, too, or it fails,
// has ended, or is not the one that a node knows.
#include "rendezvous/machine/machine.h"

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;

// Another leader was first: its entry is the newest; a and b, who are here, do not run what it
// says, so that it is over, and the next number follows it.
TEST(Machine, EntryLostToAnotherWriterIsAdopted) {
    Script s(limits(2, 2));
    s.both_are_there();
    LedgerEntry theirs = s.creating();
    theirs.leader = node("rival");
    EXPECT_THAT(
        s.step(0.6, LedgerCreated{LedgerCreated::Outcome::lost, theirs, {}}),
        ElementsAre("note: ledger entry 0 was written by rival; continuing from it", "1: Ack",
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
    EXPECT_THAT(s.created(0.6, failed),
                ElementsAre("note: cannot write the ledger: disk full; trying again"));
    EXPECT_EQ(s.next(), at(1.6));
    EXPECT_THAT(s.tick(1.5), IsEmpty());
    EXPECT_THAT(s.tick(1.6), ElementsAre("create 0: generation 0 {a b} after start"));
    EXPECT_THAT(s.created(3.7, failed),
                ElementsAre("note: the job has ended: the ledger has been unavailable for 3.1 s "
                            "(--join-timeout): disk full",
                            "1: Finished 69", "2: Finished 69", "closed with 69"));
}

// The ledger already holds the end: whoever comes is told, and nothing is written.
TEST(Machine, ClosedLedgerTellsTheEnd) {
    Machine machine(Script::config(limits(2, 2)), at(0));
    LedgerEntry end;
    end.number = EntryNumber{4};
    end.act = EndsJob{ending(Verdict::worker_failed, 3, "no restart")};
    machine.step(at(0), Lead{{node("leader"), "leader", 1}});
    const Effects effects = machine.step(at(0), LedgerRead{{end}});
    EXPECT_EQ(describe(effects.back()), "closed with 3");
    EXPECT_EQ(machine.snapshot().phase, Phase::closed);
}

// A leader that knows less of its ledger than a node looks again.
TEST(Machine, LooksAgainWhenANodeKnowsMoreOfTheLedger) {
    MachineConfig config = Script::config(limits(2, 2));
    config.succession = true;
    Script s(config);
    s.join(0, 1, node("a"));
    EXPECT_THAT(s.has_seen(0.5, 1, 0), Contains("read the ledger"));
}

// The job that a node is told of, and then what becomes of it when it comes anew as one of that or
// of another.
struct Comer {
    Comer(const std::string& ledger, std::uint64_t mark, std::uint64_t seed = 1)
        : machine(config(seed), at(0)) {
        machine.step(at(0), Lead{{node("leader"), "leader", 1}, ledger, mark});
        machine.step(at(0), LedgerRead{});
    }
    static MachineConfig config(std::uint64_t seed) {
        MachineConfig config = Script::config(limits(1, 2));
        config.seed = seed;
        return config;
    }
    Lines join(int session, std::uint64_t job) {
        const Hello hello{"job", node("a"), "1", 0};
        machine.step(at(0), ConnectionLost{Session{session - 1}});
        const Effects effects = machine.step(at(0), Came{Session{session}, hello});
        told = std::get<Welcome>(std::get<Send>(effects.at(0)).message).job;
        return lines(machine.step(at(0), Came{Session{session}, Join{offer(), Beat{}, 0, job}}));
    }
    static Lines lines(const Effects& effects) {
        Lines all;
        for (const Effect& effect : effects) all.push_back(describe(effect));
        return all;
    }
    Machine machine;
    std::uint64_t told = 0;
};

// Its job has ended while it was away, and another of that run id has begun.
TEST(Machine, RefusesANodeOfAnotherJob) {
    Comer comer("directory:/l/job", 7);
    EXPECT_THAT(comer.join(1, 0), Contains("1: Ack")) << "it has heard of no entry yet";
    EXPECT_EQ(comer.told, 7u);
    EXPECT_THAT(comer.join(2, 7), Contains("2: Ack"));
    EXPECT_THAT(comer.join(3, 8),
                ElementsAre(AllOf(HasSubstr("note: refused a node: node a belongs to "
                                            "another job with run id \"job\""),
                                  HasSubstr("job has ended, or its ledger")),
                            HasSubstr("3: Refused"), "3: closed"));
}

// What lay in memory has gone with the process that held it; the node would wait for an entry that
// never comes.
TEST(Machine, RefusesANodeOfALedgerThatIsLost) {
    Comer before("memory", 0), now("memory", 0, 2);
    before.join(1, 0);
    EXPECT_THAT(now.join(1, before.told),
                ElementsAre(HasSubstr("was restarted with the ledger in memory; --ledger="),
                            HasSubstr("1: Refused"), "1: closed"));
    EXPECT_THAT(now.join(2, now.told), Contains("2: Ack"));
}
