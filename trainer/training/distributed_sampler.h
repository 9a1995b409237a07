// DistributedSampler: which samples a rank sees in an epoch, also if the epoch continues with
// another number of ranks.
//
// The semantics are those of PyTorch's DistributedSampler. Below 2^32 / 20 samples the order for a
// seed is PyTorch's too. The list of an epoch is a permutation drawn with seed + epoch, or 0, 1, 2,
// … without shuffling. A step takes the next batch × world positions of the list. Rank r gets
// positions r, r + world, r + 2 world, … of them. At the end all ranks must have the same number of
// samples. For that the list continues from its own start (fewer than `world` samples come twice),
// or, with `drop_last`, it is cut.
//
// At any time all ranks together have taken a prefix of the list, whatever their number. So the
// pair (epoch, consumed) is the whole position, and a snapshot keeps only these two numbers. A job
// that resumes with another world size deals out the rest of the list: no sample is lost and none
// comes twice.
//
// Pure. All ranks make the same calls, each with its own rank.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace ddprun::trainer {

struct SamplerOptions {
    std::int64_t samples = 0;  // size of the data set
    std::uint64_t seed = 0;
    bool shuffle = true;
    bool drop_last = false;  // cut the end of the list instead of repeating its start
};

// Where all ranks together are: `consumed` samples of this epoch's list have been used.
struct SamplerPosition {
    std::int64_t epoch = 0;
    std::int64_t consumed = 0;
    bool operator==(const SamplerPosition&) const = default;
};

class DistributedSampler {
  public:
    // Begins with epoch 0. Errors: usage (no samples, or a rank outside of the world).
    static Result<DistributedSampler> make(const SamplerOptions& options, int rank, int world);

    // This rank's samples of the next step: at most `batch` indices, equally many on all ranks.
    // Empty if the epoch is over; then call next_epoch().
    std::vector<std::int64_t> next(std::int64_t batch);

    void next_epoch() { (void)resume({position_.epoch + 1, 0}); }

    SamplerPosition position() const { return position_; }

    // Continues at a position, for example of a snapshot. Errors: usage, for a position outside of
    // this list; it probably belongs to another data set.
    Result<void> resume(const SamplerPosition& position);

    // How many samples this rank still gets in this epoch, repeated ones included.
    std::int64_t left() const { return left_at(position_); }
    // The same from a position in the epoch's list on.
    std::int64_t left_at(const SamplerPosition& position) const;

  private:
    DistributedSampler(const SamplerOptions& options, int rank, int world)
        : options_(options), rank_(rank), world_(world) {}

    void shuffle();

    SamplerOptions options_;
    std::int64_t rank_, world_;
    SamplerPosition position_;
    std::vector<std::int64_t> order_;  // the epoch's list
};

}  // namespace ddprun::trainer
