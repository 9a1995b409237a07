// How much of a minute the workers of a node are outside of collectives: sixty looks.
#include "diagnosis/standstill/pace_meter.h"

#include <gmock/gmock.h>

namespace ddprun::agent {
namespace {

using rendezvous::Pace;

WorkerSample inside_call() { return {.is_known = true, .pending = 1}; }
WorkerSample outside_call() { return {.is_known = true}; }

// Each worker is outside in so many of the looks. Returns how often the pace was new.
int play(PaceMeter& meter, int looks, const std::vector<int>& outsides) {
    int news = 0;
    for (int look = 0; look < looks; ++look) {
        std::vector<WorkerSample> samples;
        for (const int each : outsides)
            samples.push_back(look < each ? outside_call() : inside_call());
        news += meter.sampled(samples);
    }
    return news;
}

TEST(PaceMeter, TellsTheSlowestAndTheMedianOfTheOthers) {
    PaceMeter meter;
    EXPECT_EQ(play(meter, 59, {12, 18, 59, 30}), 0);
    EXPECT_EQ(meter.pace(), Pace()) << "the minute is not over";
    EXPECT_EQ(play(meter, 1, {0, 0, 1, 0}), 1);
    EXPECT_EQ(meter.pace(), (Pace{.outside = 100, .slowest = 2, .others = 30}));
}

// Each minute counts alone.
TEST(PaceMeter, BeginsAnew) {
    PaceMeter meter;
    play(meter, 60, {6, 60});
    EXPECT_EQ(play(meter, 60, {45, 6}), 1);
    EXPECT_EQ(meter.pace(), (Pace{.outside = 75, .slowest = 0, .others = 10}));
}

TEST(PaceMeter, AWorkerAloneHasNoOthers) {
    PaceMeter meter;
    play(meter, 60, {30});
    EXPECT_EQ(meter.pace(), (Pace{.outside = 50, .slowest = 0, .others = 0}));
}

// They exist, so it is not 0.
TEST(PaceMeter, OthersThatAreAlwaysInsideAreStillThere) {
    PaceMeter meter;
    play(meter, 60, {60, 0});
    EXPECT_EQ(meter.pace(), (Pace{.outside = 100, .slowest = 0, .others = 1}));
}

// A worker that cannot be seen, or has ended, does not look like a slow one.
TEST(PaceMeter, KnowsNothingWhenOneCannotBeSeen) {
    for (const WorkerSample& hidden :
         {WorkerSample(), WorkerSample{.is_known = true, .has_ended = true}}) {
        PaceMeter meter;
        play(meter, 60, {30, 6});
        meter.sampled({inside_call(), hidden});
        EXPECT_EQ(play(meter, 59, {30, 6}), 1);
        EXPECT_EQ(meter.pace(), Pace());
        play(meter, 60, {30, 6});
        EXPECT_EQ(meter.pace().outside, 50) << "the next minute is seen again";
    }
}

}  // namespace
}  // namespace ddprun::agent
