// Which limits hold, over leaders and their entries (job_limits.h). Pure.
#include "rendezvous/parts/job_limits.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;
using namespace std::chrono_literals;

TEST(JobLimits, WhatIsSetStandsOverTheCommandLine) {
    JobLimits job(limits(2, 4, 3));
    EXPECT_EQ(job.to_record(), OperatorLimits{});
    job.set({.min_nodes = {}, .max_nodes = {}, .max_restarts = 5}, 0s);
    job.set({.min_nodes = 1, .max_nodes = 3, .max_restarts = {}}, 0s);
    EXPECT_EQ(job.now().min_nodes, 1);
    EXPECT_EQ(job.now().max_nodes, 3);
    EXPECT_EQ(job.now().max_restarts, 5) << "a later request does not take an earlier one back";
    EXPECT_EQ(job.to_record(), (OperatorLimits{1, 3, 5}));
}

// An entry of another leader says what holds, but for what was promised here meanwhile.
TEST(JobLimits, AnotherLeadersEntryReplacesWhatWasRecorded) {
    JobLimits job(limits(2, 4, 3));
    job.set({1, 3, {}}, 0s);
    job.stand(job.to_record());
    job.adopt({2, 2, 9});
    EXPECT_EQ(job.to_record(), (OperatorLimits{2, 2, 9}));
    job.set({.min_nodes = {}, .max_nodes = {}, .max_restarts = 1}, 0s);
    job.adopt({1, 4, 9});
    EXPECT_EQ(job.to_record(), (OperatorLimits{1, 4, 1}));
    EXPECT_EQ(job.now().max_nodes, 4);
}

// A leader is lost before any entry has what it was asked. Every node says it to the next one,
// which may have been asked something meanwhile.
TEST(JobLimits, WhatALostLeaderWasAskedHolds) {
    JobLimits lost(limits(2, 4, 3)), next(limits(2, 4, 3));
    lost.set({.min_nodes = {}, .max_nodes = {}, .max_restarts = 5, .by = "alice"}, 0s);
    const LimitsAsked told =
        lost.set({.min_nodes = 1, .max_nodes = 3, .max_restarts = {}, .by = "bob"}, 0s);
    EXPECT_EQ(told, (LimitsAsked{2, {1, 3, 5, "bob"}})) << "all that is not recorded";
    EXPECT_TRUE(next.hear(told));
    EXPECT_FALSE(next.hear(told)) << "another node says the same";
    EXPECT_EQ(next.to_record(), (OperatorLimits{1, 3, 5, "bob"}));
    EXPECT_EQ(next.set({.min_nodes = {}, .max_nodes = {}, .max_restarts = 7}, 0s).number, 3);
    EXPECT_FALSE(next.hear(told)) << "what was asked later counts";
    EXPECT_EQ(next.now().max_restarts, 7);
    // A node may say anything: half of a pair would be a MIN above MAX.
    EXPECT_FALSE(next.hear({9, {.min_nodes = 4, .max_nodes = {}, .max_restarts = {}, .by = {}}}));
    EXPECT_EQ(next.now().min_nodes, 1);
    // An entry has them: nothing is left to be told, and nothing changes.
    next.stand(next.to_record());
    EXPECT_EQ(next.set({}, 0s).limits, OperatorLimits{});
}

// Two leaders are asked, and neither has heard of the other: an old one that was cut off, twice,
// and then the new one. A node that has heard the old one joins the new one.
TEST(JobLimits, Rule27m_WhatWasAskedLastCountsAmongLeadersThatHaveNotHeardOfEachOther) {
    JobLimits old(limits(2, 4, 3)), next(limits(2, 4, 3));
    old.set({2, 4, {}}, 1000s);
    const LimitsAsked earlier = old.set({1, 1, {}}, 1001s);
    const LimitsAsked later = next.set({1, 2, {}}, 1002s);
    EXPECT_FALSE(next.hear(earlier));
    EXPECT_EQ(next.to_record(), (OperatorLimits{1, 2, {}}));
    EXPECT_TRUE(old.hear(later));
    // A clock that is behind takes nothing back from a leader that has heard.
    EXPECT_EQ(old.set({1, 3, {}}, 10s).number, later.number + 1);
}

TEST(JobLimits, WithoutARecordTheCommandLineHolds) {
    JobLimits job(limits(2, 4, 3));
    job.adopt({1, 2, 0});
    job.adopt({});
    EXPECT_EQ(job.now(), limits(2, 4, 3));
}

}  // namespace
}  // namespace ddprun::rendezvous
