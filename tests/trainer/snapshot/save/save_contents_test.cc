// What ranks have, compared by hashes.
#include "trainer/snapshot/save/save_contents.h"

#include <gtest/gtest.h>

#include <array>

namespace ddprun::trainer {
namespace {

const std::set<std::string> kNames{"a", "b"};

// Two tensors that all ranks have, in either order, and a slice.
std::string contents(float a, float b, bool turned = false) {
    const std::array<float, 1> first{a}, second{b}, part{a * b};
    std::vector<TensorView> tensors{tensor_view("a", {1}, std::span<const float>(first)),
                                    tensor_view("b", {1}, std::span<const float>(second)),
                                    tensor_view("w", {1}, std::span<const float>(part))};
    tensors[2].place = Place{{4}, {1}};
    if (turned) std::swap(tensors[0], tensors[1]);
    return contents_of(tensors, 3);
}

TEST(SaveContents, DependOnWhatAllRanksHaveAlone) {
    EXPECT_EQ(contents(1, 2).size(), 32u);
    EXPECT_EQ(contents(1, 2), contents(1, 2, true));
    EXPECT_EQ(contents(0, 2), contents(0, 2));
    EXPECT_TRUE(compare_contents(kNames, {contents(1, 2), contents(1, 2, true)}));
}

TEST(SaveContents, NameTensorAndRanks) {
    const auto said = [](const std::vector<std::string>& all) {
        return compare_contents(kNames, all).error().sentence();
    };
    const std::string good = contents(1, 2), odd = contents(1, 3), worse = contents(5, 2);
    const std::string b = "tensor \"b\" is not the same on ";
    EXPECT_EQ(said({good, good, odd}).find(b + "rank 2 as on rank 0"), 0u);
    EXPECT_EQ(said({odd, good, good}).find(b + "rank 0 as on rank 1"), 0u);
    EXPECT_EQ(said({good, odd}).find(b + "rank 1 as on rank 0"), 0u);
    EXPECT_EQ(said({good, odd, good, odd, good}).find(b + "ranks 1 and 3 as on rank 0"), 0u);
    EXPECT_EQ(said({odd, worse, good}).find("tensor \"a\" is not the same on rank 1 as on"), 0u);
    // A rank that has sent less than it should.
    EXPECT_EQ(said({good, good.substr(0, 16)}).find(b + "rank 1"), 0u);
}

}  // namespace
}  // namespace ddprun::trainer
