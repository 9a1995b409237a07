// How far a generation has got, by the contacts with its store (headway.h). Pure.
#include "agent/parts/headway.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

namespace ddprun::agent {
namespace {

using namespace ddprun::test;
using rendezvous::Reach;

// A job of torch: all processes find the store within seconds. Later contacts change nothing.
TEST(Headway, Rule17d_HasMetWhenAllProcessesHaveCalledTheStore) {
    Headway headway(4);
    EXPECT_EQ(headway.more_at(Reach::start), kNever) << "nothing has been started";
    headway.started(at(1));
    headway.in_contact(1, at(3));
    headway.in_contact(3, at(4));
    EXPECT_EQ(headway.at(at(20)), Reach::start) << "the fourth may be dying of an import";
    headway.in_contact(4, at(20));
    EXPECT_EQ(headway.at(at(20)), Reach::met);
    headway.in_contact(4, at(25));
    EXPECT_EQ(headway.more_at(Reach::met), at(80));
    EXPECT_EQ(headway.at(at(79)), Reach::met);
    EXPECT_EQ(headway.at(at(80)), Reach::progressed) << "a minute of life";
    EXPECT_EQ(headway.more_at(Reach::progressed), kNever);
}

// A program that trains alone, or has a rendezvous of its own, never calls the store.
TEST(Headway, Rule17e_TakesASilentProgramForOneThatNeverCalls) {
    Headway headway(2);
    headway.started(at(1));
    EXPECT_EQ(headway.more_at(Reach::start), at(31));
    EXPECT_EQ(headway.at(at(30.9)), Reach::start) << "it may still import from a slow disk";
    EXPECT_EQ(headway.at(at(31)), Reach::met);
    EXPECT_EQ(headway.at(at(91)), Reach::progressed);
}

// Only rank 0 calls the store, for a setting. The others never do, but the job trains for hours and
// must be restarted then.
TEST(Headway, Rule17f_WaitsLongerWhereSomeCall) {
    Headway headway(2);
    headway.started(at(1));
    headway.in_contact(1, at(2));
    EXPECT_EQ(headway.at(at(60.9)), Reach::start);
    EXPECT_EQ(headway.at(at(61)), Reach::met);
}

// The first contact may be seen before the keeper's answer that the last worker runs.
TEST(Headway, KnowsContactsBeforeTheStart) {
    Headway headway(1);
    headway.in_contact(1, at(2));
    EXPECT_EQ(headway.at(at(2)), Reach::met);
    headway.started(at(3));
    EXPECT_EQ(headway.more_at(Reach::met), at(62));
}

}  // namespace
}  // namespace ddprun::agent
