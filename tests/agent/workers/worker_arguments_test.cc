// Fills in the local rank in the arguments of a worker's program, as torchrun does. Pure.
#include "agent/workers/worker_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

// Only the name itself, in both of its forms. Longer names, other variables and a form without its
// brace stay for the program or its shell.
TEST(WorkerArguments, LocalRankIsReplaced) {
    EXPECT_EQ(with_local_rank("--gpu=${local_rank}", 3, false), "--gpu=3");
    EXPECT_EQ(with_local_rank("$local_rank,$local_rank", 3, false), "3,3");
    EXPECT_EQ(with_local_rank("$local_ranks ${rank} $ ${local_rank", 3, false),
              "$local_ranks ${rank} $ ${local_rank");
}

// `$$` is a shell's own process id. torchrun turns it into "$", which breaks such commands. ddprun
// leaves it alone, except where it was called as torchrun (the last parameter).
TEST(WorkerArguments, TwoDollars) {
    EXPECT_EQ(with_local_rank("kill $$", 0, false), "kill $$");
    EXPECT_EQ(with_local_rank("kill $$", 0, true), "kill $");
    EXPECT_EQ(with_local_rank("$${local_rank}", 0, true), "${local_rank}");
}

// The interpreter and the script (everything before index 2) are the user's files and stay as they
// are.
TEST(WorkerArguments, OnlyTheProgramsOwn) {
    EXPECT_THAT(worker_arguments({"python", "$local_rank.py", "$local_rank"}, 2, 1, false),
                testing::ElementsAre("python", "$local_rank.py", "1"));
}

}  // namespace
}  // namespace ddprun::agent
