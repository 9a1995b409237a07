// Tensor: memory of a program that is saved and loaded, all of a tensor or a slice of it; and how
// it is loaded.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/group/data_type.h"
#include "trainer/tensors/slice.h"

namespace ddprun::trainer {

// Memory that belongs to the program, on the host or on a GPU. It must stay as long as this object
// is used.
struct Tensor {
    std::string name;
    DataType type = DataType::float32;
    std::vector<std::uint64_t> shape;  // empty: a single number
    std::span<std::byte> data;         // product of shape × size of the type, in bytes
    std::optional<Place> place = {};   // of a slice; see TensorView
};

template <class T>
Tensor tensor(std::string name, std::vector<std::uint64_t> shape, std::span<T> values) {
    return {std::move(name), data_type<T>(), std::move(shape), std::as_writable_bytes(values)};
}

// This rank's own slice of a tensor: the elements from `offset` on, as many as `shape` says. Other
// ranks bring the rest; some may bring the same slice, with the same bits. To load, ranks may cut
// the tensor otherwise, or have all of it.
template <class T>
Tensor slice_of(std::string name, Extents whole, Extents offset, Extents shape,
                std::span<T> values) {
    return {std::move(name), data_type<T>(), std::move(shape), std::as_writable_bytes(values),
            Place{std::move(whole), std::move(offset)}};
}

// A whole tensor that not all ranks have: this one, and perhaps replicas of it (a layer of a stage,
// in a pipeline).
template <class T>
Tensor only_here(std::string name, Extents shape, std::span<T> values) {
    Extents offset(shape.size());
    return slice_of(std::move(name), shape, std::move(offset), shape, values);
}

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

}  // namespace ddprun::trainer
