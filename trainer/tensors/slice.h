// Slices: rectangles of a tensor that several ranks hold together. A rank that has a part of a
// tensor (FSDP, tensor parallel, ZeRO) saves its part and says where it lies in the whole. Ranks
// that load may cut the tensor otherwise.
//
// In a file a slice has the tensor's name with its ranges, as Python writes them: "w[0:4, 8:16]". A
// slice that is the whole tensor has the plain name.
//
// Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun::trainer {

// Elements in each dimension. Empty: a single number.
using Extents = std::vector<std::uint64_t>;

// Where a slice lies: the shape of the whole tensor, and the slice's first element. Both have as
// many dimensions as the slice.
struct Place {
    Extents whole, offset;
    bool operator==(const Place&) const = default;
};

// A rectangle of a tensor, in elements.
struct Rectangle {
    Extents offset, shape;
    bool operator==(const Rectangle&) const = default;
};

// Elements of a shape. Empty if they are more than 64 bits can count.
std::optional<std::uint64_t> elements_of(const Extents& shape);

// Whether the rectangle lies in a tensor of this shape, with the same number of dimensions.
bool lies_in(const Rectangle& part, const Extents& whole);

// "w[0:4, 8:16]", or "w" if the rectangle is the whole tensor.
std::string slice_name(const std::string& tensor, const Rectangle& part, const Extents& whole);

// "[4, 8]".
std::string describe_extents(const Extents& extents);

// "[0:4, 8:16]".
std::string describe_ranges(const Rectangle& part);

// What two rectangles of one tensor have in common. Empty: nothing, not one element.
std::optional<Rectangle> common(const Rectangle& a, const Rectangle& b);

// Calls copy(to, from, count) for each run of elements of `part` that is in one piece in both `to`
// and `from`: first elements and number, counted in C order inside the two rectangles. `part` lies
// in both. The runs come in the order of `from`.
template <class Copy>
bool for_each_run(const Rectangle& part, const Rectangle& to, const Rectangle& from, Copy&& copy) {
    const std::size_t dimensions = part.shape.size();
    // Runs go through all dimensions from `inner` on: behind it the part fills both rectangles.
    std::size_t inner = dimensions ? dimensions - 1 : 0;
    while (inner > 0 && part.shape[inner] == to.shape[inner] &&
           part.shape[inner] == from.shape[inner])
        --inner;
    std::uint64_t run = 1;
    for (std::size_t d = inner; d < dimensions; ++d) run *= part.shape[d];
    const auto place_in = [&](const Rectangle& box, const Extents& at) {
        std::uint64_t place = 0;
        for (std::size_t d = 0; d < dimensions; ++d)
            place = place * box.shape[d] + (at[d] - box.offset[d]);
        return place;
    };
    for (Extents at = part.offset;;) {
        if (!copy(place_in(to, at), place_in(from, at), run)) return false;
        std::size_t d = inner;
        for (; d > 0; --d) {
            if (++at[d - 1] < part.offset[d - 1] + part.shape[d - 1]) break;
            at[d - 1] = part.offset[d - 1];
        }
        if (d == 0) return true;
    }
}

}  // namespace ddprun::trainer
