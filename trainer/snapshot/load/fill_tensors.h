// Fills a program's tensors from what a snapshot has, cut as it may be. Pure but for the copies.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/snapshot/format/safetensors.h"
#include "trainer/tensors/tensor.h"

namespace ddprun::trainer {

// Copies bytes of a view's data to host memory.
using Gather = std::function<Result<void>(std::byte* to, std::span<const std::byte> from)>;

// Compares all names, types and shapes, and then copies. `saved`: whole tensors and slices.
// `snapshot`: what messages call it. Errors: those of load_into() and of `gather`; malformed, if
// slices leave a hole, overlap, or disagree.
Result<void> fill_tensors(const std::string& snapshot, const std::vector<TensorView>& saved,
                          const std::vector<Tensor>& tensors, const LoadOptions& options,
                          const Gather& gather);

}  // namespace ddprun::trainer
