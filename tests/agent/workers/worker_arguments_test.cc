#include "agent/workers/worker_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

TEST(WorkerArguments, LocalRankIsReplaced) {
    EXPECT_EQ(with_local_rank("--gpu=${local_rank}", 3, false), "--gpu=3");
    EXPECT_EQ(with_local_rank("$local_rank,$local_rank", 3, false), "3,3");
    EXPECT_EQ(with_local_rank("$local_ranks ${rank} $ ${local_rank", 3, false),
              "$local_ranks ${rank} $ ${local_rank");
}

// A shell's own process id, which torchrun breaks.
TEST(WorkerArguments, TwoDollars) {
    EXPECT_EQ(with_local_rank("kill $$", 0, false), "kill $$");
    EXPECT_EQ(with_local_rank("kill $$", 0, true), "kill $");
    EXPECT_EQ(with_local_rank("$${local_rank}", 0, true), "${local_rank}");
}

// The program's own name is never touched.
TEST(WorkerArguments, OnlyTheProgramsOwn) {
    EXPECT_THAT(worker_arguments({"python", "$local_rank.py", "$local_rank"}, 2, 1, false),
                testing::ElementsAre("python", "$local_rank.py", "1"));
}

}  // namespace
}  // namespace ddprun::agent
