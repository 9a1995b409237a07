// Shuffles the list of an epoch and deals it out to the ranks.
#include "trainer/training/distributed_sampler.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace ddprun::trainer {

Result<DistributedSampler> DistributedSampler::make(const SamplerOptions& options, int rank,
                                                    int world) {
    if (options.samples < 1)
        return usage_error("the data set has " + std::to_string(options.samples) +
                           " samples; is the path right?");
    if (rank < 0 || rank >= world)
        return usage_error("rank " + std::to_string(rank) + " does not exist in a world of " +
                           std::to_string(world) + " ranks");
    DistributedSampler sampler(options, rank, world);
    sampler.shuffle();
    return sampler;
}

// Fisher-Yates from the front with the 32-bit Mersenne Twister, as PyTorch's randperm does on CPUs.
// Its generator uses the low 32 bits of the seed. A long list needs two draws for each number.
void DistributedSampler::shuffle() {
    order_.resize(static_cast<std::size_t>(options_.samples));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    if (!options_.shuffle) return;
    const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(position_.epoch);
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const auto count = static_cast<std::uint64_t>(order_.size());
    // PyTorch's limit. For longer lists `drawn % n` with 32 random bits would prefer some numbers
    // too much.
    const bool wide = count >= UINT32_MAX / 20;
    for (std::uint64_t i = 0; i + 1 < count; ++i) {
        std::uint64_t drawn = random();
        if (wide) drawn = drawn << 32 | random();
        std::swap(order_[i], order_[i + drawn % (count - i)]);
    }
}

Result<void> DistributedSampler::resume(const SamplerPosition& position) {
    // consumed == samples is valid: a snapshot at the very end of an epoch.
    if (position.epoch < 0 || position.consumed < 0 || position.consumed > options_.samples) {
        return usage_error("position " + std::to_string(position.consumed) + " in epoch " +
                           std::to_string(position.epoch) + " is outside of the data set (" +
                           std::to_string(options_.samples) +
                           " samples); was the snapshot written with other data?");
    }
    const bool same = position.epoch == position_.epoch;
    position_ = position;
    // The list depends only on the epoch. Shuffling takes time for a large data set.
    if (!same) shuffle();
    return {};
}

std::int64_t DistributedSampler::left_at(const SamplerPosition& position) const {
    const std::int64_t rest = options_.samples - position.consumed;
    // The rest divided by the ranks: rounded down if the end is dropped, up if it is padded.
    return (options_.drop_last ? rest : rest + world_ - 1) / world_;
}

std::vector<std::int64_t> DistributedSampler::next(std::int64_t batch) {
    std::vector<std::int64_t> samples(
        static_cast<std::size_t>(std::clamp<std::int64_t>(batch, 0, left())));
    std::int64_t at = position_.consumed + rank_;
    for (auto& sample : samples) {
        // Padding: after the end from the start again, several times if there are fewer samples
        // than ranks.
        sample = order_[static_cast<std::size_t>(at % options_.samples)];
        at += world_;
    }
    // Without the padding, which belongs to no prefix of the list.
    position_.consumed = std::min(
        position_.consumed + static_cast<std::int64_t>(samples.size()) * world_, options_.samples);
    return samples;
}

}  // namespace ddprun::trainer
