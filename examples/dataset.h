// The samples of the example and the order in which the ranks see them.
//
// Samples come from a CSV file (numbers; the last column is the target) or are made: y is a fixed
// smooth function of x. The order is one endless list of shuffled epochs that depends on the seed
// only. A step takes the next batch × world positions, dealt like cards: rank r gets positions r, r
// + world, … So (seed, samples consumed, rank, world) say all, and `consumed` is the only position
// a snapshot needs, also for another world size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/error.h"

namespace example {

struct Batch {
    std::vector<float> x, y;
};

class Dataset {
  public:
    static Dataset made(std::size_t samples, int inputs, std::uint64_t seed);

    // Errors: not_found, malformed, with the line.
    static ddprun::Result<Dataset> from_csv(const std::string& path, std::uint64_t seed);

    int inputs() const { return inputs_; }
    std::size_t size() const { return y_.size(); }

    Batch batch(std::int64_t consumed, int size, int rank, int world);

    // The first samples as they stand, for the final loss.
    Batch head(std::size_t most) const;

  private:
    std::size_t sample_at(std::int64_t position);

    int inputs_ = 0;
    std::uint64_t seed_ = 0;
    std::vector<float> x_, y_;
    std::int64_t epoch_ = -1;  // of order_
    std::vector<std::uint32_t> order_;
};

}  // namespace example
