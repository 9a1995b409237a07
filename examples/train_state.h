// What a snapshot of `train` holds, and how a training resumes from it.
//
// Tensors: parameters and momenta (with --zero=1: each rank its slices of them); of 16-bit
// parameters also the master weights. Text: epoch,
// position in the data, seed, and the state of early stopping. The step is part of the snapshot's
// name. With these a training continues with the same bits, also in the middle of an epoch. With
// another number of ranks it continues with the samples that are left. All random numbers are
// functions of the seed and a place, so no generator's state is saved.
//
// Errors are thrown as Failures: usage, for a snapshot of another model, other data or another
// seed.
#pragma once

#include "examples/mlp.h"
#include "trainer/optimizer/sharded_optimizer.h"
#include "trainer/precision/master_weights.h"
#include "trainer/snapshot/folder/snapshot.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/training/distributed_sampler.h"
#include "trainer/training/metrics.h"

namespace example {

// Views of the memory of model and optimizer (host or GPU). They are valid as long as these are.
// `masters`: null for a model in float32. `sharded` has the momenta; null: the model has.
std::vector<ddprun::trainer::Tensor> tensors_of(Mlp& mlp,
                                                const ddprun::trainer::MasterWeights* masters,
                                                ddprun::trainer::ShardedOptimizer* sharded);

// The part of the state that is stored as text in the manifest.
ddprun::trainer::Metadata words_of(const ddprun::trainer::SamplerPosition& position,
                                   const ddprun::trainer::EarlyStop& early, std::uint64_t seed);

// Puts the text of a snapshot into the sampler and the early stopping.
void restore(const ddprun::trainer::Manifest& manifest, std::uint64_t seed,
             ddprun::trainer::DistributedSampler& sampler, ddprun::trainer::EarlyStop& early);

// The bytes of all parameters, one after the other, copied to host memory.
std::vector<std::byte> parameters_on_host(Mlp& mlp, ddprun::trainer::Memory memory);

}  // namespace example
