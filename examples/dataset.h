// The samples of the example.
//
// They come from a CSV file (numbers; the last column is the target) or are made: y is a fixed
// smooth function of x. Which of them a rank sees, and when, is the sampler's business
// (trainer/training/distributed_sampler.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace example {

struct Batch {
    std::vector<float> x, y;
};

class Dataset {
  public:
    static Dataset made(std::size_t samples, int inputs, std::uint64_t seed);

    // Errors: not_found, malformed, with the line.
    static ddprun::Result<Dataset> from_csv(const std::string& path);

    int inputs() const { return inputs_; }
    std::size_t size() const { return y_.size(); }

    Batch batch(std::span<const std::int64_t> samples) const;

    // The first samples as they stand: of `world` parts, dealt in turn, the one of `rank`.
    Batch head(std::size_t most, int rank, int world) const;

  private:
    int inputs_ = 0;
    std::vector<float> x_, y_;
};

}  // namespace example
