// How the time that a restart costs is split into phases, for the report at the job's end. Pure.
// The watch gets the marks of all nodes and must account for each second exactly once.
#include "rendezvous/rules/restart_times.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;
using enum RestartPhase;

namespace {

constexpr Generation kFirst{0}, kSecond{1}, kThird{2};

Duration sum(const RestartTimes& times) {
    Duration all{};
    for (const PhaseTime& time : times) all += time.took;
    return all;
}

Duration sum(const RestartTotals& totals) {
    Duration all{};
    for (const Duration took : totals.took) all += took;
    return all;
}

// The eight phases in their order: detected, told, stopped, gone, met, started, store contact,
// progress.
std::vector<double> seconds(const RestartTimes& times) {
    std::vector<double> all;
    for (const PhaseTime& time : times)
        all.push_back(std::chrono::duration<double>(time.took).count());
    return all;
}

// Generation 0 was made at 1. A worker fails at 10, and the leader hears it at 10.1. Node a hears
// of it at 10.2 (phase "told"), its workers stop at 10.4 and are gone at 10.5. For b the times are
// 10.5, 11.0 and 11.2. The next generation can be made at 11.5.
RestartWatch failed() {
    RestartWatch watch;
    watch.began(kFirst, at(1), {});
    watch.ended(at(10), at(10.1));
    watch.heard(node("a"), {kFirst, {{told, sec(0.3)}, {stopped, sec(0.1)}, {gone, sec(0)}}},
                at(10.5));
    watch.heard(node("b"), {kFirst, {{told, sec(0.8)}, {stopped, sec(0.3)}, {gone, sec(0.1)}}},
                at(11.3));
    return watch;
}

}  // namespace

// Each phase ends with its last node, here b. The phases have no gaps, so their sum is the time
// from the failure to the next entry. A user can then see which phase to shorten.
TEST(RestartTimes, PhasesFollowEachOtherAndAddUp) {
    const RestartRecord record = failed().record(at(11.5), RestartCause::worker);
    EXPECT_THAT(seconds(record.times), ElementsAre(0.1, 0.4, 0.5, 0.2, 0.3, 0, 0, 0));
    EXPECT_EQ(sum(record.times), sec(1.5));
    // No node stands beside "detected": the job waited for the leader itself.
    EXPECT_EQ(record.times[3].node, "b");
    EXPECT_EQ(record.times[0].node, "");
    EXPECT_EQ(record.totals.restarts, 1);
    EXPECT_THAT(record.totals.causes, ElementsAre(1, 0, 0, 0, 0, 0));
    EXPECT_EQ(sum(record.totals), sec(1.5));
    EXPECT_EQ(record.totals.longest_phase, stopped);
    EXPECT_EQ(record.totals.longest_of, kSecond);
}

// The entry of generation 1 is written before its workers start. So the times of that start stand
// in the next entry. Both together are all that was lost.
TEST(RestartTimes, TheStartStandsInTheNextEntry) {
    RestartWatch watch = failed();
    const RestartRecord first = watch.record(at(11.5), RestartCause::worker);
    watch.began(kSecond, at(11.5), first.totals);
    watch.heard(node("a"), {kSecond, {{started, sec(0.2)}, {contact, sec(0.1)}}}, at(12));
    watch.heard(node("b"), {kSecond, {{started, sec(0)}}}, at(11.9));
    watch.heard(node("a"), {kSecond, {{started, sec(1.1)}, {contact, sec(1)}, {progress, sec(0)}}},
                at(13));
    // The generation trains from 13 to 60. That time is no loss.
    watch.ended(at(60), at(60));
    const RestartRecord end = watch.record(at(61), {});
    EXPECT_THAT(seconds(end.times), ElementsAre(0, 0, 0, 0, 0, 0.4, 0, 1.1))
        << "contact of a was at 11.9, as b's start";
    EXPECT_EQ(end.totals.restarts, 1);
    EXPECT_EQ(sum(end.totals), sec(3)) << "from the failure at 10 to the progress at 13";
    EXPECT_EQ(sum(watch.record(at(62), RestartCause::worker).totals), sec(3 + 2))
        << "and another restart";
}

// A node repeats its marks on a new connection. A message that took longer makes a mark look later,
// so the earliest result is the most exact.
TEST(RestartTimes, OfWhatIsHeardAgainTheEarliestCounts) {
    RestartWatch watch = failed();
    watch.heard(node("b"), {kFirst, {{told, sec(0.8)}, {stopped, sec(0.3)}, {gone, sec(0.1)}}},
                at(11.45));
    EXPECT_THAT(seconds(watch.record(at(11.5), RestartCause::worker).times),
                ElementsAre(0.1, 0.4, 0.5, 0.2, 0.3, 0, 0, 0));
}

// A job without a failure has lost nothing, though its own start is recorded. Marks of a generation
// that this leader does not know are ignored.
TEST(RestartTimes, TheFirstStartIsNoLoss) {
    RestartWatch watch;
    watch.began(kFirst, at(1), {});
    watch.heard(node("a"), {kFirst, {{started, sec(0)}, {progress, sec(0)}}}, at(2));
    watch.heard(node("a"), {kThird, {{started, sec(0)}}}, at(9));
    watch.ended(at(9), at(9));
    const RestartRecord record = watch.record(at(10), {});
    EXPECT_THAT(seconds(record.times), ElementsAre(0, 0, 0, 0, 0, 1, 0, 0));
    EXPECT_EQ(record.totals, RestartTotals{});
    EXPECT_EQ(summary_of(record.totals), "");
    EXPECT_THAT(phases_of(record.totals), IsEmpty());
    // A job that ends before any generation has no times at all.
    EXPECT_EQ(RestartWatch{}.record(at(1), {}), RestartRecord{});
}

// A node is lost, so it sends no marks. The leader notices at 10 and goes on at 12. The phases of
// that node take no time, and the wait until the next generation is counted as "met".
TEST(RestartTimes, WhoSaysNothingIsWaitedForInMet) {
    RestartWatch watch;
    watch.began(kFirst, at(1), {});
    watch.ended(at(2), at(10));
    EXPECT_THAT(seconds(watch.record(at(12), RestartCause::worker).times),
                ElementsAre(8, 0, 0, 0, 2, 0, 0, 0));
}

// The first leader is lost, and the job's sums must not start again at 0. The new leader did not
// see how generation 2 was made (kNever), so the start counts from the last worker's start. It
// takes the failure to begin at 48, when the first node heard of the end.
TEST(RestartTimes, ALeaderThatFollowsGoesOnWithTheSums) {
    RestartTotals before;
    before.restarts = 2;
    before.took[0] = sec(5);
    before.longest = {sec(4), "c"};
    RestartWatch watch;
    watch.began(kThird, kNever, before);
    watch.heard(node("a"), {kThird, {{started, sec(30)}, {progress, sec(29)}}}, at(40));
    watch.ended(at(50), at(50));
    watch.heard(node("a"), {kThird, {{told, sec(3)}, {stopped, sec(2)}, {gone, sec(2)}}}, at(51));
    const RestartRecord record = watch.record(at(52), RestartCause::worker);
    EXPECT_THAT(seconds(record.times), ElementsAre(2, 0, 0, 0, 2, 0, 0, 1));
    EXPECT_EQ(record.totals.restarts, 3);
    // 5 s from before, 2 s detected and 2 s met, 1 s from the start to progress.
    EXPECT_EQ(sum(record.totals), sec(5 + 4 + 1));
    // 4 s of c, before this leader, stay the longest phase.
    EXPECT_EQ(record.totals.longest.node, "c");
}

// The line that a user reads at the end of the job. It says where to look, in words.
TEST(RestartTimes, SummarySaysWhereTheTimeWent) {
    RestartTotals totals;
    totals.restarts = 2;
    EXPECT_EQ(summary_of(totals), "2 restarts, 0 ms lost");
    totals.took = {sec(0.25), sec(0.25), sec(0.25), sec(0.25), sec(0.25), sec(0.25), sec(0.5), {}};
    totals.took[7] = sec(0.25);
    EXPECT_EQ(summary_of(totals),
              "2 restarts, 2.2 s lost, the longest part in starting the program");
    totals.took[6] = sec(3);
    EXPECT_EQ(summary_of(totals), "2 restarts, 4.8 s lost, most of it in starting the program");
    totals.took[4] = sec(90);
    EXPECT_EQ(summary_of(totals), "2 restarts, 94.5 s lost, nearly all in waiting for the nodes");
    totals.took[1] = sec(9000);
    EXPECT_THAT(summary_of(totals), testing::EndsWith("nearly all in noticing the failure"));
    totals.causes[static_cast<std::size_t>(RestartCause::suspended)] = 1;
    EXPECT_THAT(summary_of(totals), testing::EndsWith("in being suspended or noticing failures"));
    totals.causes[static_cast<std::size_t>(RestartCause::suspended)] = 2;
    EXPECT_THAT(summary_of(totals), testing::EndsWith("nearly all in being suspended"));
    totals.took[3] = sec(900'000);
    EXPECT_THAT(summary_of(totals), testing::EndsWith("nearly all in stopping the workers"));
}

// The two lines of --verbose.
TEST(RestartTimes, PhasesHaveThePartsAndTheLongest) {
    RestartTotals totals = failed().record(at(11.5), RestartCause::worker).totals;
    EXPECT_EQ(summary_of(totals),
              "1 restart, 1.5 s lost, the longest part in stopping the workers");
    EXPECT_THAT(phases_of(totals),
                ElementsAre("lost in restarts: 0.1 s detected, 0.4 s told, 0.5 s stopped, 0.2 "
                            "s gone, 0.3 s met, 0 ms started, 0 ms store contact, 0 ms progress",
                            "longest: generation 1, 0.5 s in stopped (b)"));
    // The leader itself was the one that was waited for: no node is named.
    totals.longest.node.clear();
    EXPECT_EQ(phases_of(totals)[1], "longest: generation 1, 0.5 s in stopped");
    // On a fast machine no phase may take a measurable time. Then none is the longest.
    RestartTotals at_once;
    at_once.restarts = 1;
    EXPECT_EQ(phases_of(at_once).size(), 1u);
}
