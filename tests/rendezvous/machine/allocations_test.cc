// Two allocations of one job as scripts of the rendezvous machine (PROTOCOL.md, rule 26). The lease
// is 10 s, so a new allocation waits 30 s, and an old one looks each 4 s. "1: " before a line is
// the session.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

namespace ddprun::rendezvous {
namespace {

MachineConfig in_slurm(int requeue) {
    MachineConfig c = Script::config(limits(1, 2));
    c.succession = c.in_slurm = true;
    c.limits.times.last_call = sec(0);
    c.requeue = requeue;
    return c;
}

// Generation 4 of a and b in entry 7, made by a leader of the allocation with restart count 0.
LedgerEntry of_the_first() {
    LedgerEntry entry;
    entry.number = EntryNumber{7};
    entry.leader = node("old", 99);
    entry.at = {node("old"), "at old", 1};
    entry.assignment = assignment(4, {node("a"), node("b")});
    return entry;
}

// A leader of the allocation with restart count 1. It becomes active at 0 and reads `newest`.
class Requeued {
  public:
    explicit Requeued(const LedgerEntry& newest, MachineConfig config = in_slurm(1))
        : Requeued(std::vector{newest}, std::move(config)) {}
    Requeued(std::vector<LedgerEntry> found, MachineConfig config)
        : machine_(std::move(config), at(0)) {
        EXPECT_THAT(step(0, Lead{{node("leader"), "leader", 1}, "a ledger", 5}),
                    ElementsAre("read the ledger"));
        read_ = step(0, LedgerRead{std::move(found)});
    }
    Lines step(double now, const Event& event) {
        Lines all;
        for (const Effect& effect : machine_.step(at(now), event)) {
            if (const auto* e = std::get_if<CreateEntry>(&effect)) creating_ = e->entry;
            const auto* sent = std::get_if<Send>(&effect);
            if (const auto* ack = sent ? std::get_if<Ack>(&sent->message) : nullptr)
                beat_.echo = ack->number;
            all.push_back(describe(effect));
        }
        return all;
    }
    // Node a of this allocation joins, and has vowed generation 4 like each idle node.
    void join(double now, int requeue = 1) {
        step(now, Came{Session{1}, Hello{"job", node("a", 2), "1", requeue}});
        beat_.number = 1;
        beat_.floor = Generation{4};
        step(now, Came{Session{1}, Join{offer(), beat_}});
    }
    Lines beat(double now) {
        ++beat_.number;
        return step(now, Came{Session{1}, Beat(beat_)});
    }
    Lines won(double now) {
        return step(now, LedgerCreated{LedgerCreated::Outcome::won, creating_, {}});
    }
    // Whether a generation is proposed at the next Beat. Another entry is taken by the ledger.
    bool generation(double now) {
        const Lines lines = beat(now);
        if (std::ranges::none_of(lines,
                                 [](const auto& line) { return line.starts_with("create"); }))
            return false;
        if (creating_.makes_generation()) return true;
        won(now);
        return false;
    }
    Machine machine_;
    Lines read_;
    LedgerEntry creating_;

  private:
    Beat beat_;
};

// A job of one node: no other can lead, so its ledger is for the next allocation alone.
MachineConfig alone(int requeue) {
    MachineConfig config = in_slurm(requeue);
    config.self = node("a", 2);
    config.limits = limits(1, 1);
    config.succession = false;
    return config;
}

bool creates(const Lines& lines) {
    return std::ranges::any_of(lines, [](const auto& line) { return line.starts_with("create"); });
}

// The earlier allocation has recorded no end. Slurm may have requeued the job because it could not
// reach nodes that still train. The wait counts from the answer to the create, at 2 s: from then on
// whoever looks finds the entry.
TEST(Allocation, WaitsThreeLeasesForAnEarlierOneWithoutAnEnd) {
    Requeued s(of_the_first());
    EXPECT_THAT(s.read_, Contains("create 8: allocation 1 after generation 4 {a b}"));
    EXPECT_THAT(s.won(2), Contains(AllOf(HasSubstr("recorded no end"), HasSubstr("30.0 s"))));
    s.join(2);
    for (double now = 2.5; now < 32; now += 0.5) ASSERT_FALSE(creates(s.beat(now))) << now;
    EXPECT_THAT(s.beat(32.5), Contains(HasSubstr("create 9: generation 5 {a}")));
}

// The nodes of a requeued job come one after the other, as at its first start, so the last call
// (6 s here) applies again. It runs during the wait.
TEST(Allocation, TheLastCallAppliesAgain) {
    MachineConfig config = in_slurm(1);
    config.limits.times.last_call = sec(6);
    Requeued s(of_the_first(), config);
    s.won(2);
    s.join(2);
    for (double now = 2.5; now < 32; now += 0.5) ASSERT_FALSE(creates(s.beat(now))) << now;
    EXPECT_TRUE(creates(s.beat(32.5)));

    LedgerEntry end = of_the_first();
    end.act = EndsJob{ended(Verdict::work_left, 75, "the time limit")};
    Requeued after(end, config);
    after.join(0.2);
    for (double now = 0.5; now < 6; now += 0.5) EXPECT_FALSE(after.generation(now)) << now;
    EXPECT_TRUE(after.generation(6.6));
}

// A job of one node trains before its entry is written, so that no entry is there proves nothing.
TEST(Allocation, Rule26n_AJobOfOneNodeWaitsThoughNoEntryIsThere) {
    MachineConfig config = alone(2);
    config.earlier_unrecorded = true;
    Requeued s(std::vector<LedgerEntry>{}, config);
    EXPECT_TRUE(creates(s.read_)) << "it begins its allocation at once";
    ASSERT_TRUE(s.creating_.allocation());
    EXPECT_TRUE(s.creating_.allocation()->awaits);
    EXPECT_THAT(s.won(2), Contains(AllOf(HasSubstr("recorded no end"), HasSubstr("30.0 s"))));
    s.join(2, 2);
    for (double now = 2.5; now < 32; now += 0.5) ASSERT_FALSE(creates(s.beat(now))) << now;
    EXPECT_TRUE(s.generation(32.5));
}

// But not at its first start, nor after a recorded end.
TEST(Allocation, Rule26m_AJobOfOneNodeStartsAtOnce) {
    Requeued first(std::vector<LedgerEntry>{}, alone(0));
    EXPECT_FALSE(creates(first.read_));
    first.join(0.1, 0);
    EXPECT_EQ(first.creating_.number, EntryNumber{0});
    EXPECT_TRUE(first.creating_.makes_generation());
    LedgerEntry end = of_the_first();
    end.act = EndsJob{ended(Verdict::work_left, 75, "the time limit")};
    Requeued after(end, alone(1));
    after.join(0.1);
    EXPECT_EQ(after.creating_.number, EntryNumber{8});
    EXPECT_TRUE(after.creating_.makes_generation());
    // An end after which a new ledger begins: of a job that has failed.
    Requeued failed(std::vector<LedgerEntry>{}, alone(1));
    failed.join(0.1);
    EXPECT_EQ(failed.creating_.number, EntryNumber{0});
    EXPECT_TRUE(failed.creating_.makes_generation());
}

// It listens for operators, so that others may call, too.
TEST(Allocation, AJobOfOneNodeTakesNoOther) {
    Requeued s(std::vector<LedgerEntry>{}, alone(0));
    const Lines lines = s.step(0.1, Came{Session{2}, Hello{"job", node("b", 1), "1", 0}});
    EXPECT_THAT(lines, Contains(HasSubstr("node b cannot join: this job has one node")));
    s.join(0.2, 0);
    EXPECT_TRUE(s.creating_.makes_generation());
}

TEST(Allocation, WaitsLongerWhereTheUserSaysSo) {
    MachineConfig config = in_slurm(1);
    config.limits.times.requeue_wait = sec(45);
    Requeued s(of_the_first(), config);
    s.won(2);
    s.join(2);
    for (double now = 2.5; now < 47; now += 0.5) ASSERT_FALSE(creates(s.beat(now))) << now;
    EXPECT_TRUE(creates(s.beat(47.5)));
}

TEST(Allocation, Rule26c_BeginsAtOnceAfterARecordedEnd) {
    LedgerEntry end = of_the_first();
    end.act = EndsJob{ended(Verdict::work_left, 75, "the time limit")};
    Requeued s(end);
    s.join(0.2);
    EXPECT_THAT(s.beat(0.5), Contains(HasSubstr("create 8: generation 5 {a}")));
}

// Another leader of this allocation has begun it and was lost. Since when old leaders could see its
// entry is not known here. So this one writes its own and waits anew, but asks that one first.
TEST(Allocation, Rule26d_ASuccessorWaitsAnew) {
    LedgerEntry begun = of_the_first();
    begun.act = BeginsAllocation{true};
    begun.requeue = 1;
    Requeued s(begun);
    EXPECT_FALSE(creates(s.read_));
    EXPECT_THAT(s.step(2, Tick{}), Contains("call old"));
    EXPECT_FALSE(creates(s.step(4.9, Tick{})));
    EXPECT_THAT(s.step(5, Tick{}), Contains("create 8: allocation 1 after generation 4 {a b}"));
    s.won(6);
    s.join(6);
    for (double now = 6.5; now < 36; now += 0.5) ASSERT_FALSE(creates(s.beat(now))) << now;
    EXPECT_TRUE(creates(s.beat(36.5)));
}

// The writer of the newest entry leads an allocation that this one follows. To yield to it would
// send all nodes to a leader that refuses them.
TEST(Allocation, DoesNotAskLeadersOfAnEarlierOne) {
    Requeued s(of_the_first());
    s.won(1);
    for (double now = 1; now < 10; now += 1)
        EXPECT_THAT(s.step(now, Tick{}), Not(Contains(HasSubstr("call"))));
}

// Two leaders before the first generation. Each knows of the other only by the entry. Whoever has
// written it stays, whatever the order says, and the other one yields.
TEST(Allocation, Rule11d_TheOneThatHasRecordedItLeads) {
    const Standing other{node("old"), true, kNoGeneration, EntryNumber{0}};
    Script writer(in_slurm(0));
    EXPECT_THAT(writer.tick(0.9), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(writer.tick(1), Contains("create 0: allocation 0"));
    writer.created(1.1);
    EXPECT_EQ(writer.snapshot().phase, Phase::gathering);
    writer.step(3.5, Called{node("old"), other});
    EXPECT_EQ(writer.snapshot().phase, Phase::gathering);

    Script loser(in_slurm(0));
    loser.tick(1);
    LedgerEntry theirs = loser.creating();
    theirs.leader = node("old", 99);
    theirs.at = {node("old"), "at old", 1};
    loser.step(1.1, LedgerCreated{LedgerCreated::Outcome::lost, theirs, {}});
    EXPECT_THAT(loser.tick(2.5), Contains("call old"));
    EXPECT_THAT(loser.step(2.6, Called{node("old"), other}), Contains(HasSubstr("old leads now")));
    EXPECT_EQ(loser.snapshot().phase, Phase::dormant);
}

// A user stops the job while it waits. An end in the ledger would tell the next allocation that
// nothing runs any more.
TEST(Allocation, Rule26e_AStopDuringTheWaitRecordsNoEnd) {
    Requeued s(of_the_first());
    s.won(1);
    s.join(1);
    const Lines lines = s.step(5, Came{Session{1}, StopAsked{.signal = 15,
                                                             .reason = "scancel",
                                                             .cause = StopCause::signal,
                                                             .left = {},
                                                             .requeue = false}});
    EXPECT_FALSE(creates(lines));
    EXPECT_THAT(lines, Contains("1: Finished 143"));
}

// ---- the earlier allocation

// The leader asks each 4 s. An answer that names no newer allocation changes nothing, and no answer
// ends no job. One that does ends it, before its lease has grown once more.
TEST(Allocation, AnOlderOneEndsWhenANewerOneHasBegun) {
    Script s(in_slurm(0));
    s.both_run();
    EXPECT_THAT(s.tick(4.4), Not(Contains(HasSubstr("look"))));
    EXPECT_THAT(s.tick(4.6), Contains("look 1"));
    EXPECT_THAT(s.step(4.7, LedgerLooked{1, -1}), IsEmpty());
    s.beat(5.8, 1), s.beat(5.8, 2), s.beat(6.2, 1), s.beat(6.2, 2), s.beat(8, 1), s.beat(8, 2);
    EXPECT_THAT(s.beat(8.7, 1), Contains("look 2"));
    s.step(11, LedgerLooked{2, std::nullopt});
    EXPECT_EQ(s.snapshot().phase, Phase::running);
    const Lines lines = s.step(11.1, LedgerLooked{2, 1});
    EXPECT_THAT(lines, Contains(HasSubstr("restart 1 of this job has begun")));
    EXPECT_THAT(lines, Contains("1: Finished 75"));
    EXPECT_EQ(s.snapshot().phase, Phase::closed);
}

// An older allocation whose create loses to an entry of a newer one ends, too.
TEST(Allocation, Rule26k_AnOlderOneEndsWhenItsCreateLosesToANewerOne) {
    Script s(in_slurm(0));
    s.both_are_there();
    LedgerEntry newer = s.creating();
    newer.leader = node("new", 5);
    newer.act = BeginsAllocation{false};
    newer.requeue = 1;
    EXPECT_THAT(s.step(1, LedgerCreated{LedgerCreated::Outcome::lost, newer, {}}),
                Contains("1: Finished 75"));
}

// The leader stood still from 1 to 6.5. Whatever it knew of the ledger is old, so the lease does
// not grow until the ledger has answered a question that was asked after that.
TEST(Allocation, Rule26h_AfterAStallTheLeaseGrowsOnlyWhenTheLedgerHasAnswered) {
    Script s(in_slurm(0));
    s.both_run();
    const Time held = s.snapshot().held_until;
    EXPECT_THAT(s.beat(6.5, 1), Contains("look 1"));
    s.beat(6.5, 2), s.beat(6.6, 1), s.beat(6.6, 2);
    EXPECT_EQ(s.snapshot().held_until, held);
    s.step(6.7, LedgerLooked{1, -1});
    s.beat(6.8, 1), s.beat(6.8, 2);
    EXPECT_GT(s.snapshot().held_until, held);
}

TEST(Allocation, Rule26i_ALedgerThatDoesNotAnswerEndsNoHealthyJob) {
    Script s(in_slurm(0));
    s.both_run();
    const Time held = s.snapshot().held_until;
    // After the longest stall that harms nobody.
    for (double now = 5.9; now < 60; now += 0.5) s.beat(now, 1), s.beat(now, 2);
    EXPECT_GT(s.snapshot().held_until, held + sec(50));
    EXPECT_EQ(s.snapshot().phase, Phase::running);
}

// The create of generation 0 was answered by "failed", but an earlier try had written the entry. A
// newer allocation may have begun since, so the leader looks before it holds the generation.
TEST(Allocation, Rule26l_AnEntryOfAnEarlierTryIsLookedAtFirst) {
    Script s(in_slurm(0));
    s.both_are_there();
    const LedgerEntry first = s.creating();
    s.created(0.6, LedgerCreated::Outcome::failed);
    s.beat(1.7, 1), s.beat(1.7, 2);
    ASSERT_NE(s.creating().random, first.random);
    EXPECT_THAT(s.step(1.8, LedgerCreated{LedgerCreated::Outcome::lost, first, {}}),
                ElementsAre("look 1"));
    EXPECT_EQ(s.snapshot().phase, Phase::creating);
    EXPECT_THAT(s.step(1.9, LedgerLooked{1, -1}), Contains(HasSubstr("1: Assigned 0")));
}

// A rendezvous outside of the job is called by both allocations, so it need not wait for a lease:
// the old one ends as by a stop, and its end is recorded when its workers are gone.
TEST(Allocation, OutsideOfTheJobTheOldOneEndsInGoodOrder) {
    MachineConfig config = Script::config(limits(1, 2));
    config.outside = true;
    Script s(config);
    s.both_run();
    EXPECT_THAT(s.step(2, LedgerLooked{0, 1}), Not(Contains("1: Finished 75")));
    s.vows(3, 1, 0);
    s.vows(3, 2, 0);
    EXPECT_EQ(s.creating().end()->code, 75);
    EXPECT_THAT(s.created(3.1), Contains("1: Finished 75"));
}

}  // namespace
}  // namespace ddprun::rendezvous
