// Which checkpoint folder is torn, from what a failed worker has printed and from the names in the
// folders. Pure.
#include "launcher/report/torn_checkpoint.h"

#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using Names = std::set<std::string>;

TEST(TornCheckpoint, FindsTheFolderInTheException) {
    EXPECT_EQ(checkpoint_named_in({"loading",
                                   "FileNotFoundError: [Errno 2] No such file or "
                                   "directory: 'out/checkpoint-20/trainer_state.json'",
                                   "bye"}),
              "out/checkpoint-20");
    EXPECT_EQ(
        checkpoint_named_in({"ValueError: Can't find a valid checkpoint at /s/o.1/checkpoint-20"}),
        "/s/o.1/checkpoint-20");
    EXPECT_EQ(checkpoint_named_in({"OSError: a/checkpoints/checkpoint_2."}),
              "a/checkpoints/checkpoint_2");
    EXPECT_EQ(checkpoint_named_in({"out/checkpoint-10 is whole", "out/checkpoint-20 is not"}),
              "out/checkpoint-20")
        << "the last line that has one";
    for (const char* none : {"", "no checkpoint at all", "checkpoint-20", "out/checkpoint-",
                             "out/checkpoint-x", "a/checkpoints", "my checkpoint 3/4"})
        EXPECT_EQ(checkpoint_named_in({none}), "") << none;
}

const Names kWhole = {"config.json", "model.safetensors", "optimizer.pt", "rng_state_0.pth",
                      "trainer_state.json"};

TEST(TornCheckpoint, IsOneThatLacksWhatAnOlderOneHas) {
    EXPECT_EQ(torn_sentence("out/checkpoint-100", {{"checkpoint-80", kWhole},
                                                   {"checkpoint-90", kWhole},
                                                   {"checkpoint-100", {"config.json"}}}),
              "out/checkpoint-100 is torn: it lacks "
              "model.safetensors and 3 more, which out/checkpoint-90 has. To resume from "
              "out/checkpoint-90: mv out/checkpoint-100 out.torn-checkpoint-100");
    Names one_less = kWhole;
    one_less.erase("trainer_state.json");
    EXPECT_EQ(
        torn_sentence("o/checkpoint_2", {{"checkpoint_1", kWhole}, {"checkpoint_2", one_less}}),
        "o/checkpoint_2 is torn: it lacks "
        "trainer_state.json, which o/checkpoint_1 has. To resume from o/checkpoint_1: mv "
        "o/checkpoint_2 o.torn-checkpoint_2");
}

// The one before it may be torn as well, of an earlier crash.
TEST(TornCheckpoint, ComparesWithTheNewestWholeOne) {
    const auto sentence = torn_sentence("o/checkpoint-3", {{"checkpoint-1", kWhole},
                                                           {"checkpoint-2", {"config.json"}},
                                                           {"checkpoint-3", {"config.json"}}});
    ASSERT_TRUE(sentence);
    EXPECT_NE(sentence->find("To resume from o/checkpoint-1:"), sentence->npos) << *sentence;
}

// The failure has another cause: nothing must be moved away.
TEST(TornCheckpoint, IsNoneWithoutProof) {
    EXPECT_FALSE(
        torn_sentence("o/checkpoint-2", {{"checkpoint-1", kWhole}, {"checkpoint-2", kWhole}}));
    EXPECT_FALSE(torn_sentence("o/checkpoint-2", {{"checkpoint-2", {"config.json"}}}));
    EXPECT_FALSE(torn_sentence("o/checkpoint-1",
                               {{"checkpoint-1", {"config.json"}}, {"checkpoint-2", kWhole}}))
        << "the other one is newer";
    EXPECT_FALSE(torn_sentence("o/checkpoint-2", {{"checkpoint-1", kWhole}})) << "it is gone";
    EXPECT_FALSE(torn_sentence("o/checkpoint-2", {{"checkpoint-1", {"a", "global_step1"}},
                                                  {"checkpoint-2", {"a", "global_step2"}}}));
    EXPECT_FALSE(torn_sentence("o/checkpoint-2", {{"checkpoint-1", {"rng_state_0", "rng_state_1"}},
                                                  {"checkpoint-2", {"rng_state_0"}}}))
        << "it is of fewer ranks";
    EXPECT_FALSE(torn_sentence("checkpoint-2", {{"checkpoint-99999999999999999999", kWhole}}));
}

}  // namespace
}  // namespace ddprun::launcher
