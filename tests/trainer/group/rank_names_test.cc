// Ranks in messages, of a group that is the job and of a part of it.
#include "trainer/group/rank_names.h"

#include <gtest/gtest.h>

namespace ddprun::trainer {
namespace {

TEST(RankNames, NameAtMostThree) {
    EXPECT_EQ(name_ranks({3}), "rank 3");
    EXPECT_EQ(name_ranks({1, 4}), "ranks 1 and 4");
    EXPECT_EQ(name_ranks({1, 4, 7}), "ranks 1, 4 and 7");
    EXPECT_EQ(name_ranks({1, 4, 7, 9, 10}), "ranks 1, 4, 7 and 2 more (5 in all)");
    EXPECT_EQ(name_rank_of(1, 2), "rank 1 of 2");
}

TEST(RankNames, OfAPartSayTheRankInTheJob) {
    const JobRanks job{1, 3, 5, 7, 9};
    EXPECT_EQ(name_rank(1, job), "rank 1 (rank 3 of the job)");
    EXPECT_EQ(name_ranks({0, 2}, job), "ranks 0 and 2 (ranks 1 and 5 of the job)");
    EXPECT_EQ(name_ranks({0, 1, 2, 4}, job),
              "ranks 0, 1, 2 and 1 more (4 in all) (ranks 1, 3, 5 and 1 more (4 in all) of the "
              "job)");
    EXPECT_EQ(name_rank_of(4, 5, job), "rank 4 of 5 (rank 9 of the job)");
}

// A part of a part has ranks of the job, too, and a part with the first ranks needs no second name.
TEST(RankNames, FollowTheSplits) {
    const JobRanks odd = job_ranks_of_part({}, {1, 3, 5});
    EXPECT_EQ(odd, JobRanks({1, 3, 5}));
    EXPECT_EQ(job_ranks_of_part(odd, {0, 2}), JobRanks({1, 5}));
    EXPECT_EQ(job_ranks_of_part({}, {0, 1}), JobRanks());
}

}  // namespace
}  // namespace ddprun::trainer
