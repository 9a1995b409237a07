// Intersects parameters with a rank's parts of the buckets.
#include "trainer/optimizer/shard_pieces.h"

#include <algorithm>

namespace ddprun::trainer {

std::vector<ShardPiece> shard_pieces(const BucketPlan& plan, std::span<const GradientShape> shapes,
                                     std::size_t shard, std::size_t shards) {
    std::vector<ShardPiece> pieces;
    for (std::size_t parameter = 0; parameter < shapes.size(); ++parameter) {
        const auto& slot = plan.slots[parameter];
        const auto& bucket = plan.buckets[slot.bucket];
        const std::size_t part = bucket.count / shards;
        const std::size_t begin = (slot.offset - bucket.offset) / size_of(bucket.type);
        const std::size_t first = std::max(begin, shard * part);
        const std::size_t end = std::min(begin + shapes[parameter].count, (shard + 1) * part);
        if (first < end)
            pieces.push_back({parameter, first - begin, end - first, slot.bucket, first});
    }
    return pieces;
}

}  // namespace ddprun::trainer
