// A snapshot that an operator asks for reaches the workers of a node once (machine.h). Scripts of
// one node.
#include "tests/agent/machine/machine_script.h"

namespace ddprun::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// An Ack of the leader that holds generation `held`, with this request.
Lines asked(Script& s, double now, std::int64_t number, int held = 0) {
    rendezvous::Ack ack = s.next_ack();
    ack.held = Generation{held};
    ack.snapshot = rendezvous::SnapshotAsked{number, "alice@login1"};
    return s.told(now, ack);
}

TEST(AgentAskedForASnapshot, Rule27q_EachRequestReachesTheWorkersOnce) {
    Script s;
    s.run();
    EXPECT_THAT(asked(s, 1, 7), Contains("ask for snapshot 7 of 0 for alice@login1"));
    EXPECT_THAT(asked(s, 1.5, 7), Not(Contains(HasSubstr("ask for"))))
        << "a worker that has removed the file would write a second one";
    EXPECT_THAT(asked(s, 2, 9), Contains(HasSubstr("ask for snapshot 9")));
    EXPECT_THAT(asked(s, 2.5, 8), Not(Contains(HasSubstr("ask for")))) << "older than what is done";
}

TEST(AgentAskedForASnapshot, OnlyTheGenerationThatIsMeant) {
    Script s;
    s.run();
    EXPECT_THAT(asked(s, 1, 7, 1), Not(Contains(HasSubstr("ask for"))));
    s.ack(1.5, 0);  // over: its workers are being stopped
    EXPECT_THAT(asked(s, 2, 8), Not(Contains(HasSubstr("ask for"))));
    Script idle;
    idle.join();
    EXPECT_THAT(asked(idle, 1, 7), Not(Contains(HasSubstr("ask for"))));
}

// A job of one node has no regular Beats; a stop may wait for this one.
TEST(AgentAskedForASnapshot, ANewSnapshotIsToldSoonInAJobOfOneNode) {
    Script s;
    s.step(0, Started{});
    s.told(0, rendezvous::Welcome{node("leader"), {}, {}, 1, {}, "", 0});
    s.ack(0.1);
    s.told(0.2, rendezvous::Assigned{EntryNumber{0}, first_of_two(0, 2), 1, Duration::max()});
    s.step(1, WorkerProgress{g0, 10, 10});
    s.tick(2);
    s.step(3, WorkerProgress{g0, 11, 10});
    EXPECT_THAT(s.tick(4), Not(Contains(HasSubstr("Beat")))) << "nothing new";
    s.step(5, WorkerProgress{g0, 20, 20});
    EXPECT_THAT(s.tick(6), Contains(HasSubstr("Beat")));
}

}  // namespace
}  // namespace ddprun::agent
