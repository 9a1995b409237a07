// Tensors in memory of the program's own, saved and loaded with one list:
//
//   std::vector<Tensor> state{tensor("w", {10, 2}, std::span(w)), tensor("b", {2}, std::span(b))};
//   writer->save(step, views_of(state), metadata);
//   load_into(snapshot, state);
//
// Thread: one.
#pragma once

#include <vector>

#include "trainer/snapshot/folder/snapshot.h"
#include "trainer/tensors/tensor.h"

namespace ddprun::trainer {

// The same tensors for save().
std::vector<TensorView> views_of(const std::vector<Tensor>& tensors);

// Copies to GPU memory, and returns when the bytes are there. It comes after what is on the legacy
// stream only: non-blocking streams must not use the memory meanwhile. A build without CUDA returns
// an error from it.
decltype(LoadOptions::copy) copy_to_gpu();

// Fills the tensors from a snapshot, also slices from other slices. Before anything is copied,
// every name, type and shape is compared. Errors: usage, for a snapshot of another model (the
// sentence names the tensor and both shapes), or a tensor whose memory does not fit its shape;
// those of `copy`.
Result<void> load_into(const Snapshot& snapshot, const std::vector<Tensor>& tensors,
                       const LoadOptions& options = {});

}  // namespace ddprun::trainer
