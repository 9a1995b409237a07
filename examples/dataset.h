// The samples on which `train` trains.
//
// They come from a CSV file, or are generated: then y is a fixed smooth function of x. The file
// does not decide which rank sees which samples; the sampler does
// (trainer/training/distributed_sampler.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace example {

// One row of inputs() values in `x`, and one value in `y`, for each sample.
struct Batch {
    std::vector<float> x, y;
};

class Dataset {
  public:
    // Generated samples. Equal arguments give equal bits.
    static Dataset made(std::size_t samples, int inputs, std::uint64_t seed);

    // A file with rows of numbers; the last column is the target. Empty lines, lines that begin
    // with #, and a first line with the names of the columns are skipped. Errors: usage, with the
    // line's number.
    static ddprun::Result<Dataset> from_csv(const std::string& path);

    int inputs() const { return inputs_; }
    std::size_t size() const { return y_.size(); }

    // The samples with these indices.
    Batch batch(std::span<const std::int64_t> samples) const;

    // Copies one sample: inputs() values to `x`, and its target to `y`. Any thread.
    void copy(std::int64_t sample, std::span<float> x, float& y) const;

    // This rank's part of the first `most` samples: every world-th one, from number `rank` on.
    Batch head(std::size_t most, int rank, int world) const;

  private:
    int inputs_ = 0;
    std::vector<float> x_, y_;
};

}  // namespace example
