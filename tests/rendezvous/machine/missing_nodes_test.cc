// What Slurm says of nodes that are missing: scripts of a step of two nodes, a (rank 0) and b, with
// a lease of 10 s.
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

MachineConfig step_of_slurm(int min_nodes = 2) {
    Limits with = limits(min_nodes, 2);
    with.order = {"a", "b"};
    MachineConfig config = Script::config(with);
    config.in_slurm = true;
    return config;
}

// b is heard no more, and a waits alone: until the lease has passed, and what it keeps back.
void b_is_lost(Script& s) {
    s.both_run();
    s.step(1.5, ConnectionLost{Session{2}});
    for (double now = 2; now < 9; ++now) s.beat(now, 1);
    s.vows(9, 1, 0);
}

// Slurm is asked when the waiting begins, and once a minute after that.
TEST(OutOfServiceNodes, AreAskedForWhileTheyAreMissing) {
    Script s(step_of_slurm());
    b_is_lost(s);
    EXPECT_THAT(s.beat(11, 1), Contains("ask Slurm about b"));
    int asked = 0;
    for (double now = 12; now < 130; ++now)
        for (const std::string& line : s.beat(now, 1)) asked += line == "ask Slurm about b";
    EXPECT_GE(asked, 1);
    EXPECT_LE(asked, 2);
}

TEST(OutOfServiceNodes, EndAJobThatNeedsThem) {
    Script s(step_of_slurm());
    b_is_lost(s);
    s.beat(11, 1);
    EXPECT_THAT(s.step(11.1, OutOfService{{{"b", "drained"}}}),
                Contains(AllOf(HasSubstr("create 1: end 69, too few nodes: 1 of 2 nodes joined"),
                               HasSubstr("not waiting for b (drained)"))));
}

// Others are waited for as before.
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

// A node that is drained and there is a node like any other.
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

// Slurm's word is no proof that a node's workers are gone: the lease decides, as without it.
TEST(OutOfServiceNodes, ProveNothing) {
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

// A start is slow for better reasons.
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
