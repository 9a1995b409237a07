// Which stream of which rank goes where, from --tee, --redirects, --label and the filters. Pure.
#include "agent/output/output_plan.h"

#include <gtest/gtest.h>

using namespace ddprun::agent;

namespace {

// A plan for one rank, with a filter for lines of stdout that contain "loss". By default prefixes
// appear as with torchrun: only for streams with --tee.
OutputPlan plan_of(RankOutput rank, Label label = Label::teed) {
    OutputPlan plan;
    plan.ranks = {rank};
    plan.label = label;
    plan.filters[0] = {"loss"};
    return plan;
}

}  // namespace

// Rank 7 is not in the plan, and gets the default as well.
TEST(OutputPlan, WithoutOptionsAllGoesToTheConsole) {
    EXPECT_EQ(plan_stream(plan_of({}), 0, kStdout, false), (StreamPlan{.console = true}));
    EXPECT_EQ(plan_stream(plan_of({}, Label::all), 7, kStderr, false),
              (StreamPlan{.console = true, .prefix = true}));
}

// stdout is redirected, so it leaves the console. stderr is teed: file and console.
TEST(OutputPlan, EachStreamOfARankIsForItself) {
    const OutputPlan plan = plan_of({.redirected = kStdout, .teed = kStderr});
    EXPECT_EQ(plan.to_files(0), kStdout | kStderr);
    EXPECT_EQ(plan_stream(plan, 0, kStdout, true), StreamPlan());
    EXPECT_EQ(plan_stream(plan, 0, kStderr, true), (StreamPlan{.console = true, .prefix = true}));
}

// --tee beats --redirects for a stream that is in both. Only teed streams feed the filters.
TEST(OutputPlan, WhatIsTeedIsShown) {
    const OutputPlan plan = plan_of({.redirected = kStdout, .teed = kStdout});
    EXPECT_EQ(plan_stream(plan, 0, kStdout, true),
              (StreamPlan{.console = true, .prefix = true, .filtered = true}));
}

// The log folder cannot be made. Output on the console is better than none.
TEST(OutputPlan, WhatHasNoFileGoesToTheConsole) {
    EXPECT_TRUE(plan_stream(plan_of({.redirected = kStdout}), 0, kStdout, false).console);
}

// --local-ranks-filter hides this rank. As with torchrun, its lines go to its own file only, though
// the file of the filters exists for other ranks.
TEST(OutputPlan, ARankThatIsNotShownFeedsNoFilters) {
    const OutputPlan plan = plan_of({.teed = kStdout, .shown = false});
    EXPECT_EQ(plan_stream(plan, 0, kStdout, true), (StreamPlan{.prefix = true}));
    EXPECT_EQ(plan.to_filtered(), kStdout);
}

// torchrun's prefix has the role and the local rank, so scripts that parse it go on working. With
// several nodes it would be the same on all, so the host and the rank are named.
TEST(OutputPlan, ThePrefixIsTorchrunsOrNamesTheHostOrIsTheUsers) {
    OutputPlan plan;
    plan.role = "actor";
    EXPECT_EQ(plan.prefix(1, 5), "[actor1]:");
    plan.host = "n2";
    EXPECT_EQ(plan.prefix(1, 5), "[n2:5]:");
    plan.hostname = "n3";
    plan.prefix_template = "${hostname}:${rank} ";
    EXPECT_EQ(plan.prefix(1, 5), "n3:5 ");
}

TEST(OutputPlan, ThePrefixOfSeveralRanksNamesThemOrThoseThatAreMissing) {
    OutputPlan plan;
    const OutputPlan::RankNames all{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}};
    EXPECT_EQ(plan.prefix(all, all), "[default0-7]:");
    EXPECT_EQ(plan.prefix({{1, 2, 5}, {9, 10, 13}}, all), "[default1-2,5]:");
    plan.host = "n2";
    EXPECT_EQ(plan.prefix(all, all), "[n2:8-15]:");
    EXPECT_EQ(plan.prefix({{0, 1, 2, 4, 5, 6, 7}, {8, 9, 10, 12, 13, 14, 15}}, all),
              "[n2:8-10,12-15]:");
    const OutputPlan::RankNames but_two{{0, 2, 3, 4, 6, 7}, {108, 110, 111, 112, 114, 115}};
    const OutputPlan::RankNames hundreds{all.local_ranks, {108, 109, 110, 111, 112, 113, 114, 115}};
    EXPECT_EQ(plan.prefix(but_two, hundreds), "[n2:all but 109,113]:");
    plan.host = "";
    EXPECT_EQ(plan.prefix({{0, 1, 3, 4, 6, 7, 9, 10, 12}, {}},
                          {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {}}),
              "[default all but 2,5,8,11]:");
}
