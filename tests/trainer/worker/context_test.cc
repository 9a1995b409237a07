// The worker's place in the job, from the variables that ddprun or torchrun sets. Variables are
// maps; the environment of the test is not read.
#include "trainer/worker/context.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

// Worker 1 of the second of two nodes with four workers each, in generation 3.
const Variables kPlace{{"RANK", "5"},
                       {"LOCAL_RANK", "1"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "10.0.0.7"},
                       {"MASTER_PORT", "29500"},
                       {"TORCHELASTIC_RESTART_COUNT", "3"},
                       {"TORCHELASTIC_RUN_ID", "job7"}};

// The same place with some values changed. emplace() keeps the value that is there already.
Variables with(Variables changes) {
    for (const auto& [name, value] : kPlace) changes.emplace(name, value);
    return changes;
}

// The sentence of the error.
std::string sentence(const Variables& variables) {
    auto context = Context::from_variables(variables);
    return context ? "no error" : context.error().sentence();
}

// Each value differs from its default, so a variable that is not read shows.
TEST(Context, ReadsItsPlace) {
    auto context = Context::from_variables(kPlace);
    ASSERT_TRUE(context) << context.error();
    EXPECT_EQ(context->rank, Rank(5));
    EXPECT_EQ(context->local_rank, LocalRank(1));
    EXPECT_EQ(context->world_size, 8);
    EXPECT_EQ(context->local_world_size, 4);
    EXPECT_EQ(context->master_addr, "10.0.0.7");
    EXPECT_EQ(context->master_port, 29500);
    EXPECT_EQ(context->generation, Generation(3));
    EXPECT_EQ(context->run_id, "job7");
}

// Started by hand, without a launcher, the program is a world of one. Users debug that way.
TEST(Context, IsAloneWithoutVariables) {
    auto context = Context::from_variables({});
    ASSERT_TRUE(context);
    EXPECT_EQ(context->world_size, 1);
    EXPECT_FALSE(context->has_store());
    EXPECT_TRUE(context->is_first());
}

// A wrong or missing variable is refused with its name. A program that guessed instead would wait
// for ranks that never come.
TEST(Context, NamesTheWrongVariable) {
    EXPECT_THAT(sentence(with({{"RANK", "8"}})),
                HasSubstr("RANK=\"8\" is not a number from 0 to 7"));
    EXPECT_THAT(sentence(with({{"RANK", "-1"}})), HasSubstr("RANK="));
    EXPECT_THAT(sentence(with({{"RANK", ""}})), HasSubstr("WORLD_SIZE is set but RANK is not"));
    EXPECT_THAT(sentence(with({{"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE="));
    EXPECT_THAT(sentence(with({{"WORLD_SIZE", "8x"}})), HasSubstr("WORLD_SIZE="));
    EXPECT_THAT(sentence(with({{"LOCAL_RANK", "4"}})), HasSubstr("LOCAL_RANK="));
    EXPECT_THAT(sentence(with({{"MASTER_ADDR", ""}})), HasSubstr("MASTER_ADDR is not set"));
    EXPECT_THAT(sentence(with({{"MASTER_PORT", "0"}})), HasSubstr("MASTER_PORT="));
    EXPECT_THAT(sentence(with({{"MASTER_PORT", "65536"}})), HasSubstr("MASTER_PORT="));
    EXPECT_THAT(sentence(with({{"TORCHELASTIC_RESTART_COUNT", "x"}})),
                HasSubstr("TORCHELASTIC_RESTART_COUNT="));
    // With "False" rank 0 would have to serve the store itself, which this library does not do.
    EXPECT_THAT(sentence(with({{"TORCHELASTIC_USE_AGENT_STORE", "False"}})),
                HasSubstr("USE_AGENT_STORE"));
}

// A worker takes the GPU of its local rank, or the only one that it is shown.
TEST(Context, FindsItsGpu) {
    auto context = Context::from_variables(kPlace);
    EXPECT_EQ(context->gpu_index(0), -1);
    EXPECT_EQ(context->gpu_index(1), 0);
    EXPECT_EQ(context->gpu_index(4), 1);
}

}  // namespace
}  // namespace ddprun::trainer
