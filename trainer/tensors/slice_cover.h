// Whether rectangles have each element of a tensor once. Pure.
//
// It goes from edge to edge and not from pair to pair. Along the first dimension, the number of
// rectangles that have an element changes only where one begins or ends. What begins and ends there
// with equal ranges in the other dimensions cancels out; the rest is looked at alike along the next
// dimension. So many rectangles in rows and columns cost little more than sorting them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/tensors/slice.h"

namespace ddprun::trainer {

// An element, and how many rectangles have it: none, or more than one.
struct WrongElement {
    Extents at;
    std::int64_t times = 0;
};

struct SliceCover {
    std::optional<WrongElement> first;  // in C order; empty: each element is there once
    std::uint64_t edges = 0;            // that were looked at
};

// `parts` lie in `whole`, whose elements count from its own offset. Empty ones have no element.
SliceCover cover_of(const std::vector<Rectangle>& parts, const Rectangle& whole);

}  // namespace ddprun::trainer
