// Rectangles that have each element of a tensor once, or the first element that is there otherwise:
// against a count element by element, and with so many that comparing each with each would show.
#include "trainer/tensors/slice_cover.h"

#include <gmock/gmock.h>

#include <random>

#include "trainer/tensors/slice_search.h"

namespace ddprun::trainer {
namespace {

using testing::ElementsAre;

SliceCover cover(const std::vector<Rectangle>& parts, const Extents& whole) {
    return cover_of(parts, {Extents(whole.size()), whole});
}

TEST(SliceCover, FindsTheFirstElementThatIsNotThereOnce) {
    EXPECT_FALSE(cover({{{0, 0}, {4, 4}}, {{4, 0}, {4, 4}}}, {8, 4}).first);
    auto wrong = cover({{{0, 0}, {4, 4}}, {{5, 0}, {3, 4}}}, {8, 4}).first;
    ASSERT_TRUE(wrong);
    EXPECT_THAT(wrong->at, ElementsAre(4, 0));
    EXPECT_EQ(wrong->times, 0);
    wrong = cover({{{0, 0}, {8, 2}}, {{0, 2}, {8, 2}}, {{7, 3}, {1, 1}}}, {8, 4}).first;
    ASSERT_TRUE(wrong);
    EXPECT_THAT(wrong->at, ElementsAre(7, 3));
    EXPECT_EQ(wrong->times, 2);
    // Single numbers, and tensors without elements.
    EXPECT_FALSE(cover({{}}, {}).first);
    EXPECT_EQ(cover({}, {}).first->times, 0);
    EXPECT_EQ(cover({{}, {}, {}}, {}).first->times, 3);
    EXPECT_FALSE(cover({}, {0, 4}).first);
    EXPECT_FALSE(cover({{{0}, {4}}, {{4}, {0}}}, {4}).first);
}

// A whole that begins elsewhere, as that of a rank which loads.
TEST(SliceCover, CountsFromTheOffsetOfTheWhole) {
    EXPECT_FALSE(cover_of({{{4, 2}, {2, 3}}, {{6, 2}, {1, 3}}}, {{4, 2}, {3, 3}}).first);
    EXPECT_THAT(cover_of({{{4, 2}, {2, 3}}, {{6, 2}, {1, 2}}}, {{4, 2}, {3, 3}}).first->at,
                ElementsAre(6, 4));
}

// Places in C order, and how many rectangles have each.
std::map<Extents, std::int64_t> counted(const std::vector<Rectangle>& parts, const Extents& whole) {
    std::map<Extents, std::int64_t> times;
    for (std::uint64_t i = 0; i < *elements_of(whole); ++i) {
        Extents at(whole.size());
        std::uint64_t left = i;
        for (std::size_t d = whole.size(); d-- > 0; left /= whole[d]) at[d] = left % whole[d];
        times[at] = std::count_if(parts.begin(), parts.end(), [&](const Rectangle& part) {
            return common(part, {at, Extents(at.size(), 1)}).has_value();
        });
    }
    return times;
}

TEST(SliceCover, SeesWhatACountOfEachElementSees) {
    std::mt19937 random(11);
    const auto upto = [&](std::uint64_t most) { return random() % (most + 1); };
    int wrong = 0;
    for (int round = 0; round < 3000; ++round) {
        Extents whole;
        for (auto d = upto(3); d > 0; --d) whole.push_back(1 + upto(3));
        // The whole, cut again and again, then sometimes one part changed.
        std::vector<Rectangle> parts{{Extents(whole.size()), whole}};
        for (auto cuts = upto(4); cuts > 0 && !whole.empty(); --cuts) {
            Rectangle& part = parts[upto(parts.size() - 1)];
            const auto d = upto(whole.size() - 1), first = upto(part.shape[d]);
            Rectangle rest = part;
            rest.offset[d] += first;
            rest.shape[d] -= first;
            part.shape[d] = first;
            parts.push_back(rest);
        }
        if (upto(2) == 0) parts[upto(parts.size() - 1)] = parts[upto(parts.size() - 1)];
        const auto found = cover(parts, whole).first;
        const auto times = counted(parts, whole);
        const auto first = std::find_if(times.begin(), times.end(),
                                        [](const auto& place) { return place.second != 1; });
        ASSERT_EQ(found.has_value(), first != times.end());
        if (!found) continue;
        ++wrong;
        ASSERT_EQ(found->at, first->first);
        ASSERT_EQ(found->times, first->second);
    }
    EXPECT_GT(wrong, 300);
}

// `rows` times `columns` rectangles of 2 by 3; every second row is moved by one column if `bricks`.
std::vector<Rectangle> grid(std::uint64_t rows, std::uint64_t columns, bool bricks = false) {
    std::vector<Rectangle> parts;
    for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t shift = bricks && row % 2 ? 1 : 0;
        if (shift) parts.push_back({{2 * row, 0}, {2, shift}});
        for (std::uint64_t column = 0; column < columns; ++column) {
            const std::uint64_t begin = 3 * column + shift, end = std::min(begin + 3, 3 * columns);
            parts.push_back({{2 * row, begin}, {2, end - begin}});
        }
    }
    return parts;
}

// Ten thousand slices: some edges of each, and not of each pair. The same if one is missing, or
// there twice.
TEST(SliceCover, LooksAtEachEdgeAFewTimes) {
    const std::tuple<std::uint64_t, std::uint64_t, bool> cuts[] = {
        {10'000, 1, false}, {1, 10'000, false}, {100, 100, false}, {100, 100, true}};
    for (const auto& [rows, columns, bricks] : cuts) {
        auto parts = grid(rows, columns, bricks);
        const Extents whole{2 * rows, 3 * columns};
        const auto most = 8 * parts.size();
        auto seen = cover(parts, whole);
        EXPECT_FALSE(seen.first);
        EXPECT_LE(seen.edges, most);
        parts.push_back(parts[parts.size() / 2]);
        seen = cover(parts, whole);
        ASSERT_TRUE(seen.first);
        EXPECT_EQ(seen.first->at, parts.back().offset);
        EXPECT_LE(seen.edges, most);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(parts.size() / 2 - 1));
        parts.pop_back();
        seen = cover(parts, whole);
        ASSERT_TRUE(seen.first);
        EXPECT_EQ(seen.first->times, 0);
        EXPECT_LE(seen.edges, most);
    }
}

// A rank that loads a row of a grid, or a whole in one dimension, looks at what is near.
TEST(SliceSearch, FindsWhatIsNearAndLittleElse) {
    for (const auto& parts : {grid(10'000, 1), grid(1, 10'000), grid(100, 100)}) {
        const SliceSearch search(parts);
        for (const std::size_t index : {std::size_t{0}, std::size_t{5000}, parts.size() - 1}) {
            const auto near = search.near(parts[index]);
            EXPECT_THAT(near, testing::Contains(index));
            EXPECT_LE(near.size(), 200u);
            EXPECT_TRUE(std::is_sorted(near.begin(), near.end()));
        }
    }
}

TEST(SliceSearch, MissesNothing) {
    std::mt19937 random(5);
    for (int round = 0; round < 500; ++round) {
        const auto some = [&] {
            return Rectangle{{random() % 9, random() % 9}, {1 + random() % 5, 1 + random() % 5}};
        };
        std::vector<Rectangle> parts;
        for (int i = 0; i < 20; ++i) parts.push_back(some());
        const Rectangle target = some();
        const auto near = SliceSearch(parts).near(target);
        for (std::size_t i = 0; i < parts.size(); ++i)
            if (common(parts[i], target)) {
                ASSERT_THAT(near, testing::Contains(i));
            }
    }
    // Single numbers have no dimension to be sorted along.
    EXPECT_THAT(SliceSearch({{}, {}}).near({}), ElementsAre(0, 1));
}

}  // namespace
}  // namespace ddprun::trainer
