// Which limits hold, over leaders and their entries (job_limits.h). Pure.
#include "rendezvous/parts/job_limits.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

TEST(JobLimits, WhatIsSetStandsOverTheCommandLine) {
    JobLimits job(limits(2, 4, 3));
    EXPECT_EQ(job.to_record(), OperatorLimits{});
    job.set({.min_nodes = {}, .max_nodes = {}, .max_restarts = 5});
    job.set({.min_nodes = 1, .max_nodes = 3, .max_restarts = {}});
    EXPECT_EQ(job.now().min_nodes, 1);
    EXPECT_EQ(job.now().max_nodes, 3);
    EXPECT_EQ(job.now().max_restarts, 5) << "a later request does not take an earlier one back";
    EXPECT_EQ(job.to_record(), (OperatorLimits{1, 3, 5}));
}

// An entry of another leader says what holds, but for what was promised here meanwhile.
TEST(JobLimits, AnotherLeadersEntryReplacesWhatWasRecorded) {
    JobLimits job(limits(2, 4, 3));
    job.set({1, 3, {}});
    job.stand(job.to_record());
    job.adopt({2, 2, 9});
    EXPECT_EQ(job.to_record(), (OperatorLimits{2, 2, 9}));
    job.set({.min_nodes = {}, .max_nodes = {}, .max_restarts = 1});
    job.adopt({1, 4, 9});
    EXPECT_EQ(job.to_record(), (OperatorLimits{1, 4, 1}));
    EXPECT_EQ(job.now().max_nodes, 4);
}

TEST(JobLimits, WithoutARecordTheCommandLineHolds) {
    JobLimits job(limits(2, 4, 3));
    job.adopt({1, 2, 0});
    job.adopt({});
    EXPECT_EQ(job.now(), limits(2, 4, 3));
}

}  // namespace
}  // namespace ddprun::rendezvous
