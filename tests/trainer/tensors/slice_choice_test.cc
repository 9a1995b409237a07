// Which rank writes what several ranks have: once, and in equal shares.
#include "trainer/tensors/slice_choice.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SliceEntry rows(std::string tensor, std::uint64_t first, std::uint64_t count,
                DataType type = DataType::float32) {
    return {std::move(tensor), type, {100}, {{first}, {count}}};
}

using Ranks = std::vector<std::vector<SliceEntry>>;

// Without replicas each rank writes what it brings, in its order.
TEST(SliceChoice, LeavesWhatOnlyOneRankHas) {
    const Ranks ranks{{rows("w", 0, 50), rows("v", 0, 100)}, {}, {rows("w", 50, 50)}};
    EXPECT_EQ(choose_writers(ranks), ranks);
    EXPECT_THAT(choose_writers({}), IsEmpty());
}

// Two tensor parallel parts, two replicas of each, four tensors of one size: two for each rank.
TEST(SliceChoice, GivesReplicasEqualShares) {
    Ranks ranks(4);
    for (std::uint64_t rank = 0; rank < 4; ++rank)
        for (const char* name : {"a", "b", "c", "d"})
            ranks[rank].push_back(rows(name, 50 * (rank % 2), 50));
    const auto written = choose_writers(ranks);
    ASSERT_EQ(written.size(), 4u);
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
        const std::uint64_t first = 50 * (rank % 2);
        const char *one = rank < 2 ? "a" : "b", *two = rank < 2 ? "c" : "d";
        EXPECT_THAT(written[rank], ElementsAre(rows(one, first, 50), rows(two, first, 50))) << rank;
    }
}

// Equal ranges of two tensors are two slices, and so are two rectangles of one tensor.
TEST(SliceChoice, TellsSlicesApartByTensorAndPlace) {
    const std::vector<SliceEntry> all{rows("a", 0, 50), rows("a", 50, 50), rows("b", 0, 50)};
    const auto written = choose_writers({all, all, all});
    for (const auto& list : written) EXPECT_EQ(list.size(), 1u);
    EXPECT_EQ(written[0][0], all[0]);
    EXPECT_EQ(written[1][0], all[1]);
    EXPECT_EQ(written[2][0], all[2]);
}

// The largest first, by bytes and not by elements: 400 to rank 0, then 300 and 100 to rank 1.
TEST(SliceChoice, DealsTheLargestFirst) {
    const std::vector<SliceEntry> all{rows("a", 0, 25), rows("b", 0, 100), rows("c", 0, 75),
                                      rows("d", 0, 90, DataType::uint8)};
    EXPECT_THAT(choose_writers({all, all}),
                ElementsAre(ElementsAre(all[1], all[3]), ElementsAre(all[0], all[2])));
}

// What only one rank can write counts first, whatever its size: rank 0 has its share already.
TEST(SliceChoice, EvensOutWhatHasNoChoice) {
    EXPECT_THAT(choose_writers({{rows("a", 0, 30), rows("own", 0, 20), rows("b", 0, 30)},
                                {rows("a", 0, 30), rows("b", 0, 30)}}),
                ElementsAre(ElementsAre(rows("own", 0, 20), rows("b", 0, 30)),
                            ElementsAre(rows("a", 0, 30))));
}

}  // namespace
}  // namespace ddprun::trainer
