// A snapshot that an operator asks for, and a stop after it (asking_snapshot.cc). Scripts of two
// nodes.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;

namespace {

Operated asks(OperatorAction action, const std::string& by = "alice@login1") {
    return {by, std::move(action)};
}
const StopJob kAfterSnapshot{.after_snapshot = true};
const auto kWanted = HasSubstr("wants a snapshot for alice@login1");
const auto kStop = Contains("1: Stop by signal 15");

TEST(AskingSnapshot, EachAckCarriesItUntilOneIsReported) {
    Script s(limits(2, 2));
    s.both_run();
    s.snapshots(1.5, 1, 10);
    EXPECT_THAT(s.step(2, asks(AskSnapshot{})),
                AllOf(Contains("note: alice@login1 has asked for a snapshot with ddpctl"),
                      Contains(AllOf(testing::StartsWith("1: Ack"), kWanted)),
                      Contains(AllOf(testing::StartsWith("2: Ack"), kWanted)),
                      Contains(HasSubstr("answer: done"))));
    EXPECT_EQ(s.status(2).snapshot_asked, "asked for by alice@login1, none reported since");
    EXPECT_THAT(s.beat(3, 2), Contains(kWanted)) << "a lost message does not matter";
    EXPECT_THAT(
        s.snapshots(4, 1, 20),
        Contains("note: the snapshot for which alice@login1 has asked is reported: step 20"));
    EXPECT_EQ(s.status(4).snapshot_asked, "");
    EXPECT_THAT(s.beat(5, 2), Not(Contains(kWanted)));
    EXPECT_TRUE(s.status(5).runs) << "the workers go on";
}

TEST(AskingSnapshot, ARequestThatIsOpenIsNotRepeated) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.step(2, asks(AskSnapshot{})),
                Contains(HasSubstr("none has been in this generation")));
    EXPECT_THAT(s.step(3, asks(AskSnapshot{}, "bob@login2")),
                ElementsAre("answer: already: a snapshot has been asked for by alice@login1, none "
                            "reported since"));
    s.snapshots(4, 1, 10);
    EXPECT_THAT(s.step(5, asks(AskSnapshot{})), Contains(HasSubstr("answer: done")));
}

// A spare has no workers.
TEST(AskingSnapshot, OnlyMembersAreAsked) {
    Script s(limits(2, 2));
    s.both_run();
    s.join(1.5, 3, node("c"));
    EXPECT_THAT(s.step(2, asks(AskSnapshot{})),
                Not(Contains(AllOf(testing::StartsWith("3: Ack"), kWanted))));
}

// What was trained since the newest snapshot is lost, so a snapshot of it cannot be had any more.
TEST(AskingSnapshot, Rule27s_ARequestEndsWithItsGeneration) {
    Script s(limits(2, 2, 3));
    s.both_run();
    s.step(2, asks(AskSnapshot{}));
    s.fails(3, 1, 0, exited(0, 1));
    EXPECT_EQ(s.status(3).snapshot_asked, "");
    EXPECT_THAT(s.step(3.1, asks(AskSnapshot{})), ElementsAre(HasSubstr("answer: again")));
    s.vows(3.2, 1, 0);
    s.vows(3.2, 2, 0);
    EXPECT_THAT(s.step(3.3, asks(AskSnapshot{})), ElementsAre(HasSubstr("answer: again")));
    s.created(3.4);
    for (int i = 1; i <= 2; ++i) EXPECT_THAT(s.runs(4, i, 1), Not(Contains(kWanted)));
}

TEST(AskingSnapshot, AJobThatEndsWritesItsLastOneAnyway) {
    Script s(limits(2, 2));
    s.both_run();
    s.step(2, asks(StopJob{}));
    EXPECT_THAT(s.step(3, asks(AskSnapshot{})),
                ElementsAre("answer: refused: the job is ending: ddpctl stop by alice@login1"));
}

TEST(StopAfterSnapshot, Rule27t_BeginsWhenANewerSnapshotIsReported) {
    Script s(limits(2, 2));
    s.both_run();
    s.snapshots(1.5, 1, 10);
    EXPECT_THAT(s.step(2, asks(kAfterSnapshot)),
                AllOf(Contains(kWanted), Not(kStop),
                      Contains(AllOf(HasSubstr("answer: done"),
                                     HasSubstr("if the leader is lost before, ask again")))));
    EXPECT_EQ(s.status(2).snapshot_asked,
              "asked for by alice@login1, none reported since; then the job stops, as alice@login1 "
              "has asked");
    EXPECT_THAT(s.step(2.5, asks(kAfterSnapshot)), ElementsAre(HasSubstr("answer: already")));
    EXPECT_THAT(s.snapshots(3, 2, 10), Not(kStop)) << "that one is not newer";
    EXPECT_THAT(s.snapshots(4, 1, 20), kStop);
    EXPECT_EQ(s.status(4).stopping, "ddpctl stop by alice@login1, after the snapshot of step 20");
    EXPECT_THAT(s.step(5, asks(kAfterSnapshot)), ElementsAre(HasSubstr("answer: already")));
}

// Somebody has asked for a snapshot already. One is enough.
TEST(StopAfterSnapshot, JoinsARequestThatIsOpen) {
    Script s(limits(2, 2));
    s.both_run();
    s.step(2, asks(AskSnapshot{}));
    EXPECT_THAT(s.step(3, asks(kAfterSnapshot, "bob@login2")), Contains(kWanted))
        << "a request of another number would be another snapshot";
    EXPECT_THAT(s.snapshots(4, 1, 20), kStop);
    EXPECT_THAT(s.status(4).stopping, HasSubstr("ddpctl stop by bob@login2"));
}

TEST(StopAfterSnapshot, APlainStopDoesNotWait) {
    Script s(limits(2, 2));
    s.both_run();
    s.step(2, asks(kAfterSnapshot));
    EXPECT_THAT(s.step(3, asks(StopJob{})), AllOf(kStop, Contains(HasSubstr("answer: done"))));
    EXPECT_EQ(s.status(3).snapshot_asked, "");
    EXPECT_EQ(s.status(3).stopping, "ddpctl stop by alice@login1");
    EXPECT_THAT(s.snapshots(4, 1, 20), Not(kStop)) << "once";
}

// A worker fails before. The next generation is asked, and what it has loaded does not count.
TEST(StopAfterSnapshot, Rule27u_IsMadeAnewInTheNextGeneration) {
    Script s(limits(2, 2, 3));
    s.both_run();
    s.snapshots(1.5, 1, 10);
    s.step(2, asks(kAfterSnapshot));
    s.fails(3, 1, 0, exited(0, 1));
    EXPECT_EQ(s.status(3).snapshot_asked,
              "asked for by alice@login1, of the generation that follows; then the job stops, as "
              "alice@login1 has asked");
    s.vows(3.2, 1, 0);
    EXPECT_THAT(s.vows(3.2, 2, 0), Contains(HasSubstr("create 1: generation 1")));
    s.created(3.4);
    EXPECT_THAT(s.runs(4, 1, 1), Contains(kWanted));
    s.runs(4, 2, 1);
    EXPECT_THAT(s.snapshots(5, 1, 10), Not(kStop)) << "it was loaded";
    EXPECT_THAT(s.snapshots(6, 1, 20), kStop);
}

// A stop may be asked for in every phase. It comes with the first snapshot that there is.
TEST(StopAfterSnapshot, MayBeAskedForBeforeTheFirstGeneration) {
    Script s(limits(2, 2));
    s.join(0, 1, node("a"));
    EXPECT_THAT(s.step(0.1, asks(kAfterSnapshot)),
                Contains(HasSubstr("answer: done: the workers of the next generation will be")));
    s.join(0.2, 2, node("b"));
    for (int i = 1; i <= 2; ++i) s.beat(0.5, i);
    s.created(0.6);
    EXPECT_THAT(s.runs(1, 1, 0), Contains(kWanted));
    s.runs(1, 2, 0);
    EXPECT_THAT(s.snapshots(2, 1, 10), kStop);
}

// A job whose workers are done has nothing to be stopped.
TEST(StopAfterSnapshot, AJobThatSucceedsBeforeHasSucceeded) {
    Script s(limits(2, 2));
    s.both_run();
    s.step(2, asks(kAfterSnapshot));
    s.completes(3, 1, 0);
    s.completes(3, 2, 0);
    s.vows(3.1, 1, 0);
    EXPECT_THAT(s.vows(3.1, 2, 0), Contains(HasSubstr("create 1: end 0")));
}

}  // namespace
