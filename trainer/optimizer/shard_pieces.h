// Which pieces of the parameters lie in one rank's parts of the buckets. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/gradients/gradient_buckets.h"

namespace ddprun::trainer {

// A run of elements of one parameter.
struct ShardPiece {
    std::size_t parameter = 0;
    std::size_t first = 0, count = 0;  // elements of the parameter
    std::size_t bucket = 0;
    std::size_t at = 0;  // in the bucket: its first element there
    bool operator==(const ShardPiece&) const = default;
};

// The pieces in part `shard` of `shards` of each bucket, in the order of the parameters. The plan
// was made for so many shards. `shapes`: of all parameters. A parameter has one piece at most: it
// lies in one bucket, and a part is in one piece.
std::vector<ShardPiece> shard_pieces(const BucketPlan& plan, std::span<const GradientShape> shapes,
                                     std::size_t shard, std::size_t shards);

}  // namespace ddprun::trainer
