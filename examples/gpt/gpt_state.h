// What a snapshot of `gpt` holds, and how a training resumes from it.
//
// Tensors: parameters, and the two moments of AdamW. Text: epoch, position in the data, seed,
// heads, vocabulary, and the text's checksum. The step is part of the snapshot's name. With these a
// training continues with the same bits, also in the middle of an epoch. With another number of
// ranks it continues with the windows that are left.
//
// Errors: usage, for a snapshot of another model, another text or another seed.
#pragma once

#include "examples/gpt/gpt_model.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/training/distributed_sampler.h"

namespace example::gpt {

// The model's own memory (host or GPU), valid as long as the model.
std::vector<ddprun::trainer::Tensor> tensors_of(Gpt& gpt);

// The part of the state that is stored as text in the manifest.
ddprun::trainer::Metadata words_of(const ddprun::trainer::DistributedSampler& sampler,
                                   std::uint64_t seed, const GptShape& shape, const Text& text);

// Puts the state of the snapshot into the model and the sampler. `memory`: where the model lies.
// `words`: what words_of() gives for this training.
ddprun::Result<void> restore(const ddprun::trainer::Snapshot& snapshot,
                             const ddprun::trainer::Metadata& words, ddprun::trainer::Memory memory,
                             Gpt& gpt, ddprun::trainer::DistributedSampler& sampler);

// All parameters, one after the other, copied to host memory.
ddprun::Result<std::vector<float>> parameters_on_host(Gpt& gpt, ddprun::trainer::Memory memory);

}  // namespace example::gpt
