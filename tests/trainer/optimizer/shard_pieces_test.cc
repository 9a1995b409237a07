// The pieces of all ranks are all parameters, each element once.
#include "trainer/optimizer/shard_pieces.h"

#include <gmock/gmock.h>

#include <random>

namespace ddprun::trainer {
namespace {

// Two parts of 128 elements: 100 and 28, and the rest of the second.
TEST(ShardPieces, AreCutWhereThePartsEnd) {
    const std::vector<GradientShape> shapes{{100}, {70}};
    const auto plan = plan_buckets(shapes, 10'000, 10'000, 2);
    ASSERT_EQ(plan.buckets[0].count, 256u);
    EXPECT_THAT(shard_pieces(plan, shapes, 0, 2),
                testing::ElementsAre(ShardPiece{0, 0, 100, 0, 0}));
    EXPECT_THAT(shard_pieces(plan, shapes, 1, 2),
                testing::ElementsAre(ShardPiece{1, 0, 70, 0, 128}));
    const std::vector<GradientShape> one{{300}};
    const auto cut = plan_buckets(one, 1, 1, 2);
    EXPECT_THAT(shard_pieces(cut, one, 1, 2),
                testing::ElementsAre(ShardPiece{0, 192, 108, 0, 192}));
}

TEST(ShardPieces, AreEveryElementOnce) {
    std::mt19937 random(5);
    for (int round = 0; round < 300; ++round) {
        std::vector<GradientShape> shapes(1 + random() % 8);
        for (auto& shape : shapes) shape.count = random() % 700;
        const std::size_t shards = 1 + random() % 7;
        const auto plan = plan_buckets(shapes, random() % 2000, 1 + random() % 4000, shards);
        std::vector<std::vector<int>> seen;
        for (const auto& shape : shapes) seen.emplace_back(shape.count);
        for (std::size_t shard = 0; shard < shards; ++shard) {
            for (const auto& piece : shard_pieces(plan, shapes, shard, shards)) {
                const auto& bucket = plan.buckets[piece.bucket];
                const auto& slot = plan.slots[piece.parameter];
                EXPECT_EQ(slot.offset + piece.first * 4, bucket.offset + piece.at * 4);
                EXPECT_GE(piece.at, shard * bucket.count / shards);
                EXPECT_LE(piece.at + piece.count, (shard + 1) * bucket.count / shards);
                for (std::size_t i = 0; i < piece.count; ++i)
                    ++seen[piece.parameter].at(piece.first + i);
            }
        }
        for (const auto& parameter : seen) EXPECT_THAT(parameter, testing::Each(1));
    }
}

}  // namespace
}  // namespace ddprun::trainer
