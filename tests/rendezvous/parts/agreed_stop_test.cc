// What a member hears while all workers are stopped as planned (PROTOCOL.md, rules 20 and 23).
// Pure.
#include "rendezvous/parts/agreed_stop.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

// A user's SIGUSR1, with 20 s of the job's time left.
StopAsked by_signal() {
    return {.signal = 10, .reason = "SIGUSR1", .cause = StopCause::signal, .left = sec(20)};
}

// A node may get the Stop later than the others, for example because it was disconnected. By then
// less time is left for the snapshot: 20 − 3 s.
TEST(AgreedStop, TellsHowMuchTimeIsLeft) {
    AgreedStop stop;
    EXPECT_FALSE(stop.told(at(0), Generation{2}, std::nullopt));
    stop.begin(by_signal(), at(100));
    EXPECT_TRUE(stop.is_asked() && stop.is_under_way());
    Ending ending = ended_by_stop(StopCause::signal, 10, "stopped: SIGUSR1 on node a");
    ending.requeue = true;
    const auto told = stop.told(at(103), Generation{2}, ending);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->generation, Generation{2});
    EXPECT_EQ(told->signal, 10);
    EXPECT_EQ(told->reason, "SIGUSR1") << "nothing has stopped yet";
    EXPECT_EQ(told->left, sec(17));
    EXPECT_TRUE(told->requeue);
}

// Nodes came late and the workers stop so that they can be taken in. The job goes on, so this stop
// is forgotten with its generation. If it stayed, the next generation would stop at once.
TEST(AgreedStop, ForALargerWorldEndsWithTheGeneration) {
    AgreedStop stop;
    stop.regroup(StopCause::larger_world, "c joined");
    EXPECT_TRUE(stop.is_under_way());
    EXPECT_FALSE(stop.is_asked()) << "the job goes on";
    const auto told = stop.told(at(0), Generation{2}, std::nullopt);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->cause, StopCause::larger_world);
    EXPECT_EQ(told->reason, "c joined");
    stop.regrouped();
    EXPECT_FALSE(stop.is_under_way());
}

}  // namespace
}  // namespace ddprun::rendezvous
