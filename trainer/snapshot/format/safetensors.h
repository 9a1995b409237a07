// The safetensors format: named tensors in one file, which Python's tools open too. (Described in
// the README of github.com/huggingface/safetensors.)
//
//   8 bytes   N, little endian: length of the header
//   N bytes   header, JSON: name → {"dtype", "shape", "data_offsets": [begin, end]}, and
//             "__metadata__": an object of strings
//   the rest  the data in C order, little endian; no gap, no overlap, nothing after the last tensor
//
// We pad the header with spaces, so that the data begin at a multiple of 4096 bytes. Such a file
// can be mapped or read directly. The input is not trusted: every length is checked before it is
// used.
//
// Slices have names with ranges (slice.h). The metadata of their file say under "slices" what they
// are, as JSON: {"w[0:4, 8:16]": {"tensor": "w", "whole": [8, 16], "offset": [0, 8]}}. A slice that
// is the whole tensor is written as any other tensor.
//
// Pure: bytes in, values out. Error: malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/snapshot/format/metadata.h"
#include "trainer/tensors/tensor_view.h"

namespace ddprun::trainer {

// Everything before the data: length and header. The data must follow in the order of data_order().
// Errors: those of check_savable() (savable.h); usage, for a header that no reader would take.
Result<std::string> safetensors_head(const std::vector<TensorView>& tensors,
                                     const Metadata& metadata);

// The indices of `tensors` in the order of their data in the file. The widest type comes first, so
// that every tensor is aligned; equal types are ordered by name.
std::vector<std::size_t> data_order(const std::vector<TensorView>& tensors);

// A parsed file.
struct Safetensors {
    Metadata metadata;
    std::vector<TensorView>
        tensors;  // views into the bytes that were parsed, in the order of the data

    // Null if there is no whole tensor of this name.
    const TensorView* find(const std::string& name) const;
};

// The bytes before the data, as the first eight of the file say. 8 if there are fewer than that.
std::uint64_t header_bytes(std::span<const std::byte> file);

// Parses the bytes of a whole file. Errors: malformed; the sentence names the place.
Result<Safetensors> parse_safetensors(std::span<const std::byte> file);

}  // namespace ddprun::trainer
