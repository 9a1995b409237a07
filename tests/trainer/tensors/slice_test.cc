// Rectangles of tensors: names, what they have in common, and the runs that copy one
// into another, against a copy element by element.
#include "trainer/tensors/slice.h"

#include <gmock/gmock.h>

#include <random>

namespace ddprun::trainer {
namespace {

TEST(Slice, HasTheRangesInItsNameUnlessItIsTheWhole) {
    EXPECT_EQ(slice_name("w", {{0, 8}, {4, 8}}, {8, 16}), "w[0:4, 8:16]");
    EXPECT_EQ(slice_name("b", {{3}, {0}}, {8}), "b[3:3]");
    EXPECT_EQ(slice_name("w", {{0, 0}, {8, 16}}, {8, 16}), "w");
    EXPECT_EQ(slice_name("count", {{}, {}}, {}), "count");
}

TEST(Slice, LiesInAWholeWithoutWrappingAround) {
    EXPECT_TRUE(lies_in({{4, 0}, {4, 2}}, {8, 2}));
    EXPECT_FALSE(lies_in({{4, 0}, {5, 2}}, {8, 2}));
    EXPECT_FALSE(lies_in({{9}, {0}}, {8}));
    EXPECT_FALSE(lies_in({{~std::uint64_t{0}}, {2}}, {8}));
    EXPECT_FALSE(lies_in({{0}, {8}}, {8, 1}));
    EXPECT_FALSE(elements_of({~std::uint64_t{0}, 2}));
}

TEST(Slice, HasInCommonWhatLiesInBoth) {
    EXPECT_EQ(common({{0, 0}, {4, 4}}, {{2, 3}, {4, 4}}), (Rectangle{{2, 3}, {2, 1}}));
    EXPECT_FALSE(common({{0, 0}, {4, 4}}, {{4, 0}, {4, 4}}));
    EXPECT_FALSE(common({{0}, {4}}, {{2}, {0}}));
    EXPECT_EQ(common({{}, {}}, {{}, {}}), Rectangle());
}

std::uint64_t upto(std::mt19937& random, std::uint64_t most) { return random() % (most + 1); }

// A rectangle of one element at least.
Rectangle some_part(std::mt19937& random, const Extents& whole) {
    Rectangle part;
    for (auto extent : whole) {
        part.offset.push_back(upto(random, extent - 1));
        part.shape.push_back(1 + upto(random, extent - part.offset.back() - 1));
    }
    return part;
}

// The place of an element of the whole in a rectangle; empty if it is not there.
std::optional<std::uint64_t> place_in(const Rectangle& box, const Extents& at) {
    std::uint64_t place = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
        if (at[d] < box.offset[d] || at[d] >= box.offset[d] + box.shape[d]) return std::nullopt;
        place = place * box.shape[d] + at[d] - box.offset[d];
    }
    return place;
}

// The runs copy exactly the common elements, each once, and join what lies together.
TEST(Slice, CopiesInRunsWhatACopyElementByElementDoes) {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        Extents whole;
        for (auto d = upto(random, 3); d > 0; --d) whole.push_back(1 + upto(random, 4));
        const Rectangle to = some_part(random, whole), from = some_part(random, whole);
        std::map<std::uint64_t, std::uint64_t> copied, expected;
        const auto part = common(to, from);
        std::uint64_t last = 0;
        if (part)
            for_each_run(*part, to, from, [&](auto into, auto at, auto count) {
                EXPECT_GE(at, last) << "not in the order of `from`";
                last = at + count;
                for (std::uint64_t i = 0; i < count; ++i)
                    EXPECT_TRUE(copied.emplace(into + i, at + i).second);
                return true;
            });
        for (std::uint64_t i = 0; i < *elements_of(whole); ++i) {
            Extents at(whole.size());
            std::uint64_t left = i;
            for (std::size_t d = whole.size(); d-- > 0; left /= whole[d]) at[d] = left % whole[d];
            if (auto into = place_in(to, at))
                if (auto out = place_in(from, at)) expected.emplace(*into, *out);
        }
        ASSERT_EQ(copied, expected);
    }
    int runs = 0;
    for_each_run({{2, 0}, {3, 8}}, {{0, 0}, {8, 8}}, {{2, 0}, {6, 8}}, [&](auto, auto, auto count) {
        EXPECT_EQ(count, 24u);
        return ++runs;
    });
    EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace ddprun::trainer
