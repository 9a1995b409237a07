// What the leader lets workers of all nodes know of losses and of nodes that come
// (rendezvous/model/news.h). Scripts of two nodes with a worker each.
#include "tests/rendezvous/machine/machine_script.h"

namespace ddprun::rendezvous {
namespace {

const Generation g0{0};

WorkerOutcome killed(int rank) {
    WorkerOutcome outcome = exited(rank, 0);
    outcome.signal = 9;
    return outcome;
}

// Facts come with the answer to a Beat, half a second later. This is for workers that wait for it.
TEST(News, Rule16f_TheAckThatEndsAGenerationNamesTheDeadWorker) {
    Script s(limits(2, 2));
    s.both_run();
    EXPECT_THAT(s.fails(2, 2, 0, killed(1)), Contains("1: Ack over 0"));
    const News lost{g0, {{NewsKind::worker_lost, "b", 1, 1, 0, 9}}};
    EXPECT_THAT(s.take_news(1), ElementsAre(lost));
    s.beat(2.1, 1);
    EXPECT_THAT(s.take_news(1), IsEmpty()) << "once on a connection";
    s.joins_again(2.2, 3, 1, node("a"));
    EXPECT_THAT(s.take_news(3), ElementsAre(lost)) << "the first time may be lost with it";
}

TEST(News, TheAckThatEndsAGenerationNamesTheLostNode) {
    Script s(limits(2, 2));
    s.both_run();
    s.come(2, 2, Leave{"its disk is full"});
    EXPECT_THAT(s.take_news(1), ElementsAre(News{g0, {{NewsKind::node_lost, "b", 1, 1}}}));
}

TEST(News, Rule16g_MembersHearOfANodeThatComes) {
    Script s(limits(2, 2));
    s.both_run();
    s.join(2, 3, node("c"));
    s.beat(3, 1);
    s.beat(3, 3);
    EXPECT_THAT(s.take_news(1), ElementsAre(News{g0, {{NewsKind::node_joined, "c"}}}));
    EXPECT_THAT(s.take_news(3), IsEmpty()) << "it has no workers";
}

// A rank that hangs lives.
TEST(News, AHangIsNoDeath) {
    Script s(limits(2, 2));
    s.both_run();
    WorkerOutcome hung = exited(1, 0);
    hung.hung = true;
    s.come(2, 2, Join{offer(), {}, 0, 0, Facts{.generation = g0, .failures = {{"b", hung}}}});
    EXPECT_THAT(s.take_news(1), IsEmpty());
}

TEST(News, TheNextGenerationBeginsWithoutAny) {
    Script s(limits(2, 2, 3));
    s.both_run();
    s.fails(2, 2, 0, killed(1));
    s.vows(2.5, 1, 0);
    s.vows(2.5, 2, 0);
    s.beat(3.5, 1), s.beat(3.5, 2);  // the silence of nodes has been judged
    s.created(3.6);
    s.take_news(1), s.take_news(2);
    s.runs(3.7, 1, 1);
    s.runs(3.7, 2, 1);
    EXPECT_THAT(s.take_news(1), IsEmpty());
    s.fails(4, 1, 1, killed(0));
    EXPECT_THAT(s.take_news(2),
                ElementsAre(News{Generation{1}, {{NewsKind::worker_lost, "a", 0, 1, 0, 9}}}));
}

}  // namespace
}  // namespace ddprun::rendezvous
