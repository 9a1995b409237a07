// The rendezvous machine and its ledger, as scripts (machine_test.cc): another leader writes it
// too, it fails, it holds the end already, or it is not the ledger that a node knows.
#include "rendezvous/machine/machine.h"

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;

// Two leaders are active for a moment, and the other one was first with entry 0. Its entry counts.
// a and b are here and do not run that generation, so it is over, and this leader proposes the next
// one.
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

// The disk is full. The create is tried again each 0.1 L = 1 s. At the join timeout (3 s here) the
// job ends, and all nodes hear why.
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
                ElementsAre("note: the job has ended after 3.7 s, 0 generations, exit code 69: the "
                            "ledger has been unavailable for 3.1 s "
                            "(--join-timeout): disk full",
                            "1: Finished 69", "2: Finished 69", "closed with 69"));
}

// The job has ended already, and this ddprun is started late or again with the same run id. It must
// not run the job once more.
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

// A network file system may show an old state of the folder. A node has heard of an entry that this
// leader has not read. So the leader reads again, before it decides on old knowledge.
TEST(Machine, LooksAgainWhenANodeKnowsMoreOfTheLedger) {
    MachineConfig config = Script::config(limits(2, 2));
    config.succession = true;
    Script s(config);
    s.join(0, 1, node("a"));
    EXPECT_THAT(s.has_seen(0.5, 1, 0), Contains("read the ledger"));
}

// A rendezvous with a ledger and a node a. In its Welcome the node learns an id of the job
// (`told`). With a later Join it says by which job's id it has heard of an entry. `seed` stands for
// the process: a restarted rendezvous has another one.
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
    // Ends the connection before this one, then comes anew with that id (0: none yet).
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

// The node's job has ended while it was cut off, and another job with the same run id has begun. In
// that job the node would end with a result that is not its own.
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

// ddprun-rendezvous was restarted, and its ledger in memory is lost. The node would wait for
// entries that never come. The message says which option keeps a ledger.
TEST(Machine, RefusesANodeOfALedgerThatIsLost) {
    Comer before("memory", 0), now("memory", 0, 2);
    before.join(1, 0);
    EXPECT_THAT(now.join(1, before.told),
                ElementsAre(HasSubstr("was restarted with the ledger in memory; --ledger="),
                            HasSubstr("1: Refused"), "1: closed"));
    EXPECT_THAT(now.join(2, now.told), Contains("2: Ack"));
}
