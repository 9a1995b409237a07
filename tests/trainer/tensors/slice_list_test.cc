// Slices of several ranks: whole tensors, or a sentence that names tensor, ranks and place.
#include "trainer/tensors/slice_list.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;

SliceEntry slice(std::string tensor, Extents whole, Extents offset, Extents shape,
                 DataType type = DataType::float32) {
    return {std::move(tensor), type, std::move(whole), {std::move(offset), std::move(shape)}};
}

using Ranks = std::vector<std::vector<SliceEntry>>;

void expect_refused(const Ranks& ranks, const std::string& sentence) {
    const auto done = check_slices(ranks, {"c"});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::refused);
    EXPECT_EQ(done.error().sentence(), sentence);
}

TEST(SliceList, IsGoodIfEachElementIsThereOnce) {
    EXPECT_TRUE(check_slices({{slice("w", {4, 2}, {0, 0}, {4, 1}), slice("b", {3}, {0}, {3})},
                              {},
                              {slice("w", {4, 2}, {0, 1}, {3, 1})},
                              {slice("w", {4, 2}, {3, 1}, {1, 1}), slice("n", {}, {}, {})}},
                             {"c"}));
    // A rank whose share is empty, as the last one of five has of four rows.
    EXPECT_TRUE(check_slices({{slice("w", {4}, {0}, {4})}, {slice("w", {4}, {4}, {0})}}, {}));
}

TEST(SliceList, NamesWhatIsMissing) {
    expect_refused({{slice("w", {8, 4}, {0, 0}, {4, 4})}, {slice("w", {8, 4}, {5, 0}, {3, 4})}},
                   "tensor \"w\": no rank brings the element [4, 0]: all slices together have 28 "
                   "elements, and the whole (F32 [8, 4]) has 32; the slices of all ranks must make "
                   "up the whole");
}

TEST(SliceList, NamesWhatIsThereTwice) {
    const char* advice = "ranks that share elements bring equal slices";
    expect_refused(
        {{}, {slice("w", {8}, {0}, {5})}, {slice("w", {8}, {4}, {4})}},
        std::string("tensor \"w\": rank 1 has the slice [0:5] and rank 2 the slice [4:8], "
                    "so [4:5] would be saved twice; ") +
            advice);
    // A part of a replica, which would make up the whole without it.
    expect_refused(
        {{slice("w", {8}, {0}, {8})}, {slice("w", {8}, {0}, {8})}, {slice("w", {8}, {2}, {2})}},
        std::string("tensor \"w\": rank 0 has the slice [0:8] and rank 2 the slice [2:4], "
                    "so [2:4] would be saved twice; ") +
            advice);
    // The second rank lists a replica twice.
    const auto whole = slice("w", {8}, {0}, {8});
    EXPECT_THAT(check_slices({{whole}, {whole, whole}}, {}).error().sentence(),
                HasSubstr("[0:8] would be saved twice"));
    // One rank, as many elements as the whole has, but not the right ones.
    const Ranks same{{slice("w", {8}, {0}, {4}), slice("w", {8}, {0}, {4})}};
    EXPECT_THAT(check_slices(same, {}).error().sentence(), HasSubstr("[0:4] would be saved twice"));
}

TEST(SliceList, IsGoodWithReplicas) {
    const auto left = slice("w", {8}, {0}, {4}), right = slice("w", {8}, {4}, {4}),
               norm = slice("n", {3}, {0}, {3});
    EXPECT_TRUE(check_slices({{left, norm}, {right, norm}, {left, norm}, {right, norm}}, {"c"}));
    // Replicas do not fill a gap, and must be of one type.
    expect_refused(
        {{left}, {left}},
        "tensor \"w\": no rank brings the element [4]: all slices together have 4 elements, "
        "and the whole (F32 [8]) has 8; the slices of all ranks must make up the whole");
    expect_refused({{norm}, {slice("n", {3}, {0}, {3}, DataType::bfloat16)}},
                   "tensor \"n\": rank 1 has a slice of BF16 [3], and rank 0 one of F32 [3]");
}

TEST(SliceList, NamesTypesAndShapesThatDiffer) {
    expect_refused({{slice("w", {8}, {0}, {4})}, {slice("w", {9}, {4}, {5})}},
                   "tensor \"w\": rank 1 has a slice of F32 [9], and rank 0 one of F32 [8]");
    expect_refused({{slice("w", {8}, {0}, {4})}, {slice("w", {8}, {4}, {4}, DataType::bfloat16)}},
                   "tensor \"w\": rank 1 has a slice of BF16 [8], and rank 0 one of F32 [8]");
    expect_refused({{slice("w", {8}, {6}, {4})}},
                   "tensor \"w\": rank 0 has the slice [6:10], which does not lie in the whole "
                   "[8]");
    expect_refused({{slice("c", {8}, {0}, {8})}},
                   "tensor \"c\": rank 0 brings a slice of it, and all ranks bring the whole");
}

// The product of the shape wraps around to 0, and the slice has 64 elements.
TEST(SliceList, RefusesAWholeThatCannotBeCounted) {
    const std::uint64_t much = std::uint64_t{1} << 32;
    expect_refused({{slice("w", {much, much}, {0, 0}, {8, 8})}},
                   "tensor \"w\": rank 0 has a slice of F32 [4294967296, 4294967296], and so many "
                   "elements do not fit into 64 bits; is the shape of the whole right?");
}

TEST(SliceList, ComesBackFromItsText) {
    const std::vector<float> values(6);
    std::vector<TensorView> tensors{tensor_view("w", {2, 3}, std::span<const float>(values)),
                                    tensor_view("a \"b\"", {6}, std::span<const float>(values)),
                                    tensor_view("shared", {6}, std::span<const float>(values))};
    tensors[0].place = Place{{4, 3}, {2, 0}};
    tensors[1].place = Place{{6}, {0}};
    const auto slices = parse_slices(write_slices(tensors));
    ASSERT_TRUE(slices);
    EXPECT_THAT(*slices, testing::ElementsAre(slice("a \"b\"", {6}, {0}, {6}),
                                              slice("w", {4, 3}, {2, 0}, {2, 3})));
    EXPECT_EQ(write_slices({tensors[2]}), "");
    // An empty share is not brought.
    auto nothing = tensor_view("w", {0, 3}, std::span<const float>());
    nothing.place = Place{{4, 3}, {4, 0}};
    EXPECT_EQ(write_slices({nothing}), "");
    nothing.place = Place{{0, 3}, {0, 0}};
    EXPECT_EQ(write_slices({nothing}), R"([["w","F32",[0,3],[0,0],[0,3]]])");
    for (const char* text : {"x", "[1]", "[[]]", "[[\"w\",\"F9\",[1],[0],[1]]]",
                             "[[\"w\",\"F32\",[1],[0]]]", "[[\"w\",\"F32\",[\"1\"],[0],[1]]]"})
        EXPECT_FALSE(parse_slices(text)) << text;
}

}  // namespace
}  // namespace ddprun::trainer
