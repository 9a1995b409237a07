// The phases of a start.
#include "agent/node/start_phases.h"

#include <gtest/gtest.h>

using namespace ddprun;
using namespace ddprun::agent;

namespace {

Time at(int milliseconds) { return Time{std::chrono::milliseconds{milliseconds}}; }

}  // namespace

TEST(StartPhases, AddUpToTheWhole) {
    StartPhases phases;
    phases.begin(2, at(1000));
    phases.started(at(1004));
    phases.started(at(1005));
    phases.met(1, at(1020));
    phases.met(2, at(1045));
    phases.met(3, at(1046));
    EXPECT_EQ(phases.progressed(at(1095), at(1065)),
              "the first progress came after 95 ms: program 5 ms, imports 40 ms, process group 20 "
              "ms, first step 30 ms");
    EXPECT_EQ(phases.progressed(at(1500), at(1245)), "") << "only the first one";
}

// On another node, or in a program that uses no store.
TEST(StartPhases, GiveTheTimeOfWhatIsNotSeenToTheNextOne) {
    StartPhases phases;
    EXPECT_EQ(phases.progressed(at(1), {}), "") << "of no generation";
    phases.begin(2, at(0));
    phases.started(at(5));
    phases.met(1, at(9));
    EXPECT_EQ(phases.progressed(at(50), at(10)),
              "the first progress came after 50 ms: program 5 ms, first step 45 ms");
    phases.begin(1, at(100));
    phases.met(1, at(110));
    EXPECT_EQ(phases.progressed(at(150), at(170)),
              "the first progress came after 50 ms: imports 10 ms, process group 40 ms, first step "
              "0 ms")
        << "a thread may ask the store later";
}
