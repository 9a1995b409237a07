// What the rendezvous machine makes of Slurm's word about missing nodes (PROTOCOL.md, rule 8).
// Scripts of a step of two nodes, a (rank 0) and b, with a lease of 10 s. Slurm knows when a node
// is drained or down. Then nobody has to wait ten minutes for it.
#include <gmock/gmock.h>

#include "tests/rendezvous/machine/machine_script.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

// `order` names the nodes of the step, so the machine knows who is missing.
MachineConfig step_of_slurm(int min_nodes = 2) {
    Limits with = limits(min_nodes, 2);
    with.order = {"a", "b"};
    MachineConfig config = Script::config(with);
    config.in_slurm = true;
    return config;
}

// b's host is lost at 1.5. a's workers stop when the lease has passed (8), and a vows at 9. The
// margin ends at 10: only then a may go on without b.
void b_is_lost(Script& s) {
    s.both_run();
    s.step(1.5, ConnectionLost{Session{2}});
    for (double now = 2; now < 9; ++now) s.beat(now, 1);
    s.vows(9, 1, 0);
}

// Slurm is asked when the waiting begins and then once a minute. A job of a thousand nodes must not
// load Slurm's controller.
TEST(OutOfServiceNodes, AreAskedForWhileTheyAreMissing) {
    Script s(step_of_slurm());
    b_is_lost(s);
    EXPECT_THAT(s.beat(11, 1), Contains("ask Slurm about b"));
    // 118 s from here: one or two more questions, depending on the Beats.
    int asked = 0;
    for (double now = 12; now < 130; ++now)
        for (const std::string& line : s.beat(now, 1)) asked += line == "ask Slurm about b";
    EXPECT_GE(asked, 1);
    EXPECT_LE(asked, 2);
}

// The job needs both nodes, and b is drained. It ends now, and not after the join timeout.
TEST(OutOfServiceNodes, EndAJobThatNeedsThem) {
    Script s(step_of_slurm());
    b_is_lost(s);
    s.beat(11, 1);
    EXPECT_THAT(s.step(11.1, OutOfService{{{"b", "drained"}}}),
                Contains(AllOf(HasSubstr("create 1: end 69, too few nodes: 1 of 2 nodes joined"),
                               HasSubstr("not waiting for b (drained)"))));
}

// An empty answer, and one about a node that is here, change nothing: a new ddprun on b still gets
// its place.
TEST(OutOfServiceNodes, ThatAreNotMissingChangeNothing) {
    Script s(step_of_slurm());
    b_is_lost(s);
    s.beat(11, 1);
    EXPECT_THAT(s.step(11.1, OutOfService{}), IsEmpty());
    EXPECT_THAT(s.step(11.2, OutOfService{{{"a", "draining"}}}),
                Not(Contains(HasSubstr("create"))));
    s.join(12, 3, node("b", 2));
    s.beat(12, 1);
    EXPECT_THAT(s.vows(12.5, 3, 0), Contains(HasSubstr("create 1: generation 1 {a b}")));
}

// An administrator drains b while its new ddprun runs. Slurm lets a drained node finish its jobs,
// so b is a member like any other.
TEST(OutOfServiceNodes, ThatAreHereAreMembers) {
    Script s(step_of_slurm());
    b_is_lost(s);
    s.beat(11, 1);
    s.join(11.5, 3, node("b", 2));
    EXPECT_THAT(s.step(11.6, OutOfService{{{"b", "draining"}}}),
                Not(Contains(HasSubstr("end 69"))));
    s.beat(12, 1);
    EXPECT_THAT(s.vows(12.5, 3, 0), Contains(HasSubstr("create 1: generation 1 {a b}")));
}

// Slurm says "down" when it does not reach a node, and that node may still train. So the lease and
// its margin decide, as they do without Slurm: the next generation starts after 10 and not before.
TEST(OutOfServiceNodes, Rule8h_ProveNothing) {
    Script s(step_of_slurm(1));
    s.both_run();
    s.step(1.5, ConnectionLost{Session{2}});
    for (double now = 2; now < 9; ++now) {
        EXPECT_THAT(s.step(now, OutOfService{{{"b", "down"}}}), Not(Contains(HasSubstr("create"))));
        s.beat(now, 1);
    }
    s.vows(9, 1, 0);
    EXPECT_THAT(s.beat(9.9, 1), Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(s.beat(10.1, 1), Contains(HasSubstr("create 1: generation 1 {a}")));
}

// At the start of a job nodes are usually just slow.
TEST(OutOfServiceNodes, AreNotAskedForInTheFirstMinute) {
    Script s(step_of_slurm());
    s.join(0, 1, node("a"));
    for (double now = 1; now < 60; ++now)
        EXPECT_THAT(s.beat(now, 1), Not(Contains(HasSubstr("ask Slurm")))) << now;
    EXPECT_THAT(s.beat(61, 1), Contains("ask Slurm about b"));
}

TEST(OutOfServiceNodes, AreNobodysOutsideSlurm) {
    MachineConfig config = step_of_slurm();
    config.in_slurm = false;
    Script s(config);
    b_is_lost(s);
    for (double now = 11; now < 200; ++now)
        EXPECT_THAT(s.beat(now, 1), Not(Contains(HasSubstr("ask Slurm")))) << now;
}

}  // namespace
