// What a snapshot of `train` holds, and how a run goes on from it: parameters and momenta as
// tensors; step, position in the data, seed and what early stopping has seen as words. With these
// the run goes on with the same bits, also in the middle of an epoch; with another number of ranks,
// with the samples that are left. All randomness is a function of the seed and a place, so there is
// no generator's state to keep.
//
// Errors: usage, for a snapshot of another model, other data or another seed.
#pragma once

#include "examples/mlp.h"
#include "trainer/snapshot/snapshot.h"
#include "trainer/training/distributed_sampler.h"
#include "trainer/training/metrics.h"

namespace example {

// Of the memory where the model lies; they live as long as it.
std::vector<ddprun::trainer::TensorView> tensors_of(Mlp& mlp);

ddprun::trainer::Metadata words_of(const ddprun::trainer::DistributedSampler& sampler,
                                   const ddprun::trainer::EarlyStop& early, std::uint64_t seed);

ddprun::Result<void> restore(const ddprun::trainer::Snapshot& snapshot, std::uint64_t seed,
                             ddprun::trainer::Memory memory, Mlp& mlp,
                             ddprun::trainer::DistributedSampler& sampler,
                             ddprun::trainer::EarlyStop& early);

// The parameters, one behind the other, in host memory.
ddprun::Result<std::vector<float>> parameters_on_host(Mlp& mlp, ddprun::trainer::Memory memory);

}  // namespace example
