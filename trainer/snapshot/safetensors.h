// The safetensors format: named tensors in one file that Python's readers open too.
//
//   8 bytes      N, little endian: length of the header
//   N bytes      JSON: name → {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__":
//   strings the rest     the data in C order, little endian; no hole, no overlap, nothing behind
//   the last
//
// Pure: bytes in, values out. Data begin at offset 4096 or a multiple (the header is padded with
// spaces), so that a file can be mapped or read directly. Input is distrusted: every length is
// checked before it is used. Error: malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/group/data_type.h"

namespace ddprun::trainer {

using Metadata = std::map<std::string, std::string>;

// A tensor that someone else owns; `data` must live as long as the view.
struct TensorView {
    std::string name;
    DataType type = DataType::float32;
    std::vector<std::uint64_t> shape;  // empty: one number
    std::span<const std::byte> data;   // product of shape × size of type
};

template <class T>
TensorView tensor_view(std::string name, std::vector<std::uint64_t> shape,
                       std::span<const T> values) {
    return {std::move(name), data_type<T>(), std::move(shape), std::as_bytes(values)};
}

// All that precedes the data: length and header. The data of `tensors` follow in the order of
// `data_order`. Errors: usage, for a name twice, or data that do not fit the shape.
Result<std::string> safetensors_head(const std::vector<TensorView>& tensors,
                                     const Metadata& metadata);

// The indices of `tensors` as their data lie in the file: widest type first (all are aligned then),
// then by name.
std::vector<std::size_t> data_order(const std::vector<TensorView>& tensors);

struct Safetensors {
    Metadata metadata;
    std::vector<TensorView>
        tensors;  // views into the bytes that were parsed, in the order of the data

    // Null when there is none of this name.
    const TensorView* find(const std::string& name) const;
};

// Reads a whole file's bytes. Errors: malformed, naming the place.
Result<Safetensors> parse_safetensors(std::span<const std::byte> file);

}  // namespace ddprun::trainer
