// TensorView: a tensor, or a slice of one, as it is saved: name, type and shape, its place in the
// whole, and its bytes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/group/data_type.h"
#include "trainer/tensors/slice.h"

namespace ddprun::trainer {

// A tensor whose memory belongs to somebody else, or a slice of one. `data` must live as long as
// the view.
struct TensorView {
    std::string name;
    DataType type = DataType::float32;
    std::vector<std::uint64_t> shape;  // empty: a single number
    std::span<const std::byte> data;   // product of shape × size of the type, in bytes
    // Where the slice lies in the tensor. Without it this is a tensor that all ranks have.
    std::optional<Place> place = {};

    bool is_part() const { return place && place->whole != shape; }
    // A slice without an element, of a tensor that has some: it is not saved. A rank whose share is
    // empty lists it all the same, so that its list has all names when it loads.
    bool is_nothing() const { return is_part() && data.empty(); }
};

template <class T>
TensorView tensor_view(std::string name, std::vector<std::uint64_t> shape,
                       std::span<const T> values) {
    return {std::move(name), data_type<T>(), std::move(shape), std::as_bytes(values)};
}

// The name in the file.
std::string key_of(const TensorView& tensor);

// "F32 [3, 4]"; "F32 []" for a single number.
std::string describe_shape(DataType type, const std::vector<std::uint64_t>& shape);

}  // namespace ddprun::trainer
