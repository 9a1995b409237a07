// Which samples a rank sees in an epoch, also when the epoch goes on with another number of ranks.
//
// PyTorch's semantics, and (below 2^32 / 20 samples) PyTorch's own order for the same seed: the
// list of an epoch is a permutation drawn with seed + epoch, or 0, 1, 2, … without shuffling. It is
// dealt like cards: a batch of B per rank is the next B × world positions, of which rank r gets the
// r-th, (r + world)-th, … At the end, so that all ranks have equally many, the list is continued
// from its own start (padding: fewer than `world` samples come twice), or with `drop_last` cut.
//
// What all ranks together have taken is a prefix of the list, whatever their number. So (epoch,
// consumed) is the whole position: a job that resumes with another world deals the rest of the list
// anew, and no sample is lost or comes twice. A snapshot keeps these two numbers.
//
// Pure. The same calls on all ranks, each with its own rank.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace ddprun::trainer {

struct SamplerOptions {
    std::int64_t samples = 0;
    std::uint64_t seed = 0;
    bool shuffle = true;
    bool drop_last = false;
};

// Where all ranks together stand: `consumed` samples of this epoch's list are done.
struct SamplerPosition {
    std::int64_t epoch = 0;
    std::int64_t consumed = 0;
    bool operator==(const SamplerPosition&) const = default;
};

class DistributedSampler {
  public:
    // Errors: usage (no samples, or a rank outside the world).
    static Result<DistributedSampler> make(const SamplerOptions& options, int rank, int world);

    // This rank's samples of the next step, at most `batch`; all ranks get equally many. Empty: the
    // epoch is over, call next_epoch().
    std::vector<std::int64_t> next(std::int64_t batch);

    void next_epoch() { (void)resume({position_.epoch + 1, 0}); }

    SamplerPosition position() const { return position_; }

    // Errors: usage, for a position that this list does not have: another data set's.
    Result<void> resume(const SamplerPosition& position);

    // How many samples this rank still gets in this epoch, padding included.
    std::int64_t left() const;

  private:
    DistributedSampler(const SamplerOptions& options, int rank, int world)
        : options_(options), rank_(rank), world_(world) {}

    void shuffle();

    SamplerOptions options_;
    std::int64_t rank_, world_;
    SamplerPosition position_;
    std::vector<std::int64_t> order_;
};

}  // namespace ddprun::trainer
