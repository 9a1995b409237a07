// Where the output of each worker goes: console, files, labels in front of lines. Pure; no file is
// opened.
#include "launcher/plan/plan_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using agent::Label;
using testing::ElementsAre;
using testing::IsEmpty;

// Node n1 with so many workers. The random part of names is fixed.
Plan planned(std::vector<std::string> words, int slots = 2, bool as_torchrun = false,
             int nodes = 1) {
    words.push_back("train");
    auto options = parse_options(words, {});
    EXPECT_TRUE(options) << options.error().sentence();
    HostFacts host;
    host.temporary_directory = "/scratch";
    host.random_id = "0123456789abcdef";
    host.called_as_torchrun = as_torchrun;
    Plan plan;
    plan.slots = slots;
    plan.limits.max_nodes = nodes;
    plan.node_name = "n1";
    plan_output(plan, *options, host);
    return plan;
}

}  // namespace

// 1 is stdout, 2 is stderr, 3 is both, as in torchrun. Rank 0 is hidden on the console (the filter
// names rank 1), and its files are still written.
TEST(PlanOutput, StreamsOfEachRank) {
    const Plan plan = planned({"-t0:3", "-r0:1,1:2", "--local-ranks-filter=1", "--log-dir=l"});
    ASSERT_EQ(plan.workers.output.ranks.size(), 2u);
    EXPECT_EQ(plan.workers.output.ranks[0].teed, 3);
    EXPECT_EQ(plan.workers.output.ranks[0].redirected, 1);
    EXPECT_FALSE(plan.workers.output.ranks[0].shown);
    EXPECT_EQ(plan.workers.output.ranks[1].redirected, 2);
    EXPECT_TRUE(plan.workers.output.ranks[1].shown);
    EXPECT_EQ(plan.log_dir, "l");
    EXPECT_THAT(plan.host_warnings, IsEmpty());
}

// A label tells whose line it is. One worker needs none. Called as torchrun, only lines of --tee
// have one, as there.
TEST(PlanOutput, Labels) {
    EXPECT_EQ(planned({}).workers.output.label, Label::all);
    EXPECT_EQ(planned({}, 1).workers.output.label, Label::teed);
    EXPECT_EQ(planned({}, 2, true).workers.output.label, Label::teed);
    EXPECT_EQ(planned({"--label"}, 1, true).workers.output.label, Label::all);
    EXPECT_EQ(planned({"--log-line-prefix-template=x"}, 1).workers.output.label, Label::all);
    EXPECT_EQ(planned({"--log-line-prefix-template=x"}, 1, true).workers.output.label, Label::teed);
    EXPECT_EQ(planned({"--no-label"}).workers.output.label, Label::none);
}

TEST(PlanOutput, OneLineForSeveralRanksOnlyWithLabelsOfDdprun) {
    EXPECT_TRUE(planned({}, 4).workers.output.collapse);
    EXPECT_FALSE(planned({"--collapse=off"}, 4).workers.output.collapse);
    EXPECT_FALSE(planned({"--no-label"}, 4).workers.output.collapse);
    // Of one rank nothing is equal, and its lines would come later.
    EXPECT_FALSE(planned({"--local-ranks-filter=2"}, 4).workers.output.collapse);
    EXPECT_TRUE(planned({"--local-ranks-filter=0,2"}, 4).workers.output.collapse);
    EXPECT_FALSE(planned({"--log-line-prefix-template=x"}, 4).workers.output.collapse);
    EXPECT_FALSE(planned({"--label"}, 4, true).workers.output.collapse);
}

// The lines of all nodes are read together, so each names its host and rank, also with one worker
// on each node. Called as torchrun they look as there.
TEST(PlanOutput, LabelsOfSeveralNodesNameTheHost) {
    const agent::OutputPlan one = planned({}, 1, false, 2).workers.output;
    EXPECT_EQ(one.label, Label::all);
    EXPECT_EQ(one.prefix(0, 5), "[n1:5]:");
    EXPECT_EQ(planned({"--no-label"}, 1, false, 2).workers.output.label, Label::none);
    const agent::OutputPlan torchrun = planned({}, 4, true, 2).workers.output;
    EXPECT_EQ(torchrun.label, Label::teed);
    EXPECT_EQ(torchrun.prefix(1, 5), "[default1]:");
    EXPECT_EQ(planned({}, 4).workers.output.prefix(1, 5), "[default1]:");
    EXPECT_EQ(planned({"--role=7:"}, 4, false, 2).workers.output.host, "");
}

// The user wants files but names no folder. They stay after the job, in a folder of torchrun's
// name, and the log says where.
TEST(PlanOutput, FilesThatNobodyNamedAPlaceForAreKept) {
    const Plan plan = planned({"-r3"});
    EXPECT_EQ(plan.log_dir, "/scratch/torchelastic_01234567");
    EXPECT_THAT(plan.notes,
                ElementsAre("the workers' output goes to files in "
                            "/scratch/torchelastic_01234567; --log-dir chooses another folder"));
    EXPECT_EQ(planned({}).log_dir, "");
}

// A script that throws the files away. Nothing is written below /dev/null, and options that need
// files become warnings.
TEST(PlanOutput, TheNullDeviceMeansNoFiles) {
    const Plan plan =
        planned({"-r1", "-t2", "--log-dir=/dev/null", "--duplicate-stdout-filters=a"});
    EXPECT_EQ(plan.log_dir, "");
    EXPECT_EQ(plan.workers.output.ranks[0].redirected | plan.workers.output.ranks[0].teed, 0);
    EXPECT_THAT(plan.workers.output.filters[0], IsEmpty());
    EXPECT_EQ(plan.warnings.size(), 2u);
    EXPECT_THAT(planned({"--log-dir=/dev/null"}).warnings, IsEmpty());
}

}  // namespace ddprun::launcher
