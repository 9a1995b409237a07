#include "agent/output/output_plan.h"

#include <gtest/gtest.h>

using namespace ddprun::agent;

namespace {

OutputPlan plan_of(RankOutput rank, Label label = Label::teed) {
    OutputPlan plan;
    plan.ranks = {rank};
    plan.label = label;
    plan.filters[0] = {"loss"};
    return plan;
}

}  // namespace

TEST(OutputPlan, WithoutOptionsAllGoesToTheConsole) {
    EXPECT_EQ(plan_stream(plan_of({}), 0, kStdout, false), (StreamPlan{.console = true}));
    EXPECT_EQ(plan_stream(plan_of({}, Label::all), 7, kStderr, false),
              (StreamPlan{.console = true, .prefix = true}));
}

TEST(OutputPlan, EachStreamOfARankIsForItself) {
    const OutputPlan plan = plan_of({.redirected = kStdout, .teed = kStderr});
    EXPECT_EQ(plan.to_files(0), kStdout | kStderr);
    EXPECT_EQ(plan_stream(plan, 0, kStdout, true), StreamPlan());
    EXPECT_EQ(plan_stream(plan, 0, kStderr, true), (StreamPlan{.console = true, .prefix = true}));
}

// --tee beats --redirects for a stream that is in both.
TEST(OutputPlan, WhatIsTeedIsShown) {
    const OutputPlan plan = plan_of({.redirected = kStdout, .teed = kStdout});
    EXPECT_EQ(plan_stream(plan, 0, kStdout, true),
              (StreamPlan{.console = true, .prefix = true, .filtered = true}));
}

TEST(OutputPlan, WhatHasNoFileGoesToTheConsole) {
    EXPECT_TRUE(plan_stream(plan_of({.redirected = kStdout}), 0, kStdout, false).console);
}

TEST(OutputPlan, ARankThatIsNotShownFeedsNoFilters) {
    const OutputPlan plan = plan_of({.teed = kStdout, .shown = false});
    EXPECT_EQ(plan_stream(plan, 0, kStdout, true), (StreamPlan{.prefix = true}));
    EXPECT_EQ(plan.to_filtered(), kStdout);
}

TEST(OutputPlan, ThePrefixIsTorchrunsOrTheUsers) {
    OutputPlan plan;
    plan.role = "actor";
    EXPECT_EQ(plan.prefix(1, 5), "[actor1]:");
    plan.hostname = "n3";
    plan.prefix_template = "${hostname}:${rank} ";
    EXPECT_EQ(plan.prefix(1, 5), "n3:5 ");
}
