// Tensors in memory of the program's own, saved and loaded with one list:
//
//   std::vector<Tensor> state{tensor("w", {10, 2}, std::span(w)), tensor("b", {2}, std::span(b))};
//   writer->save(step, views_of(state), metadata);
//   load_into(snapshot, state);
//
// Thread: one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/snapshot/snapshot.h"

namespace ddprun::trainer {

// Memory that belongs to the program, on the host or on a GPU. It must stay as long as this object
// is used.
struct Tensor {
    std::string name;
    DataType type = DataType::float32;
    std::vector<std::uint64_t> shape;  // empty: a single number
    std::span<std::byte> data;         // product of shape × size of the type, in bytes
};

template <class T>
Tensor tensor(std::string name, std::vector<std::uint64_t> shape, std::span<T> values) {
    return {std::move(name), data_type<T>(), std::move(shape), std::as_writable_bytes(values)};
}

// The same tensors for save().
std::vector<TensorView> views_of(const std::vector<Tensor>& tensors);

// What happens to tensors of the snapshot that the program does not list.
enum class Rest {
    refused,  // an error: the snapshot is of another model
    ignored,  // for a part of it, e.g. the parameters of a base model without its optimizer
};

struct LoadOptions {
    Rest rest = Rest::refused;
    // Copies to the program's memory. Empty: memcpy; for tensors on a GPU: copy_to_gpu().
    std::function<Result<void>(const Tensor& to, std::span<const std::byte> from)> copy = {};
};

// Copies to GPU memory. A build without CUDA returns an error from it.
decltype(LoadOptions::copy) copy_to_gpu();

// Fills the tensors from a snapshot. Before anything is copied, every name, type and shape is
// compared. Errors: usage, for a snapshot of another model (the sentence names the tensor and both
// shapes), or a tensor whose memory does not fit its shape; those of `copy`.
Result<void> load_into(const Snapshot& snapshot, const std::vector<Tensor>& tensors,
                       const LoadOptions& options = {});

}  // namespace ddprun::trainer
