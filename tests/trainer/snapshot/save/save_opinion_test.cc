// What two ranks say about a save, and the sentence for the first thing in which they differ. The
// sentences themselves are tested over the store (save_agreement_test.cc); here is what those runs
// do not reach.
#include "trainer/snapshot/save/save_opinion.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;

const SaveOpinion kOpinion{{8, Generation(2)}, 4, 3, "0123456789abcdef"};

TEST(SaveOpinion, ComesBackFromItsText) {
    EXPECT_EQ(parse_opinion(write_opinion(kOpinion)).value(), kOpinion);
    for (const char* text : {"", "8 2 4", "8 2 4 3", "eight 2 4 3 0123"})
        EXPECT_FALSE(parse_opinion(text)) << text;
}

TEST(SaveOpinion, FindsNothingWhereNothingDiffers) {
    EXPECT_EQ(disagreement(kOpinion, 1, kOpinion), std::nullopt);
    // Other tensors are said by tensor_disagreement().
    SaveOpinion other = kOpinion;
    other.tensors = "another";
    EXPECT_EQ(disagreement(kOpinion, 1, other), std::nullopt);
}

TEST(SaveOpinion, NamesAnotherGenerationAndAnotherWorld) {
    SaveOpinion stale = kOpinion, small = kOpinion;
    stale.name.generation = Generation(1);
    small.world_size = 2;
    EXPECT_THAT(disagreement(kOpinion, 3, stale).value_or(""),
                HasSubstr("rank 3 saves snapshot-000000000008-g1, and rank 0 saves "
                          "snapshot-000000000008-g2"));
    EXPECT_THAT(disagreement(kOpinion, 3, small).value_or(""),
                HasSubstr("rank 3 saves as one of 2 ranks, and rank 0 saves as one of 4"));
}

// Names with spaces and brackets, a single number, an empty tensor, and a name with a line end,
// which must not become two lines.
TEST(SaveOpinion, ListsTensorsInTheOrderOfTheirNames) {
    const std::vector<TensorView> tensors{{"w [1]", DataType::bfloat16, {3, 4}, {}},
                                          {"b", DataType::float64, {}, {}},
                                          {"a\nb", DataType::uint8, {0}, {}}};
    const std::string list = tensor_list(tensors);
    EXPECT_EQ(list, "a?b U8 [0]\nb F64 []\nw [1] BF16 [3, 4]\n");
    auto other = tensors;
    other[0].shape = {4, 3};
    EXPECT_THAT(tensor_disagreement(list, 2, tensor_list(other)),
                HasSubstr("rank 2 saves \"w [1]\" as BF16 [4, 3], and rank 0 saves \"w [1]\" as "
                          "BF16 [3, 4]"));
}

}  // namespace
}  // namespace ddprun::trainer
