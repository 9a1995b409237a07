// Finds, among many slices of one tensor, those that may have elements in a rectangle: sorted along
// the dimension in which the tensor is cut most often. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/tensors/slice.h"

namespace ddprun::trainer {

class SliceSearch {
  public:
    // All have equally many dimensions.
    explicit SliceSearch(std::vector<Rectangle> parts);

    // The indices of the parts near `target`, ascending: all that have an element in it, and few
    // others.
    std::vector<std::size_t> near(const Rectangle& target) const;
    const Rectangle& part(std::size_t index) const { return parts_[index]; }

  private:
    std::vector<Rectangle> parts_;
    std::size_t axis_ = 0;
    std::vector<std::size_t> order_;  // by their offset along the axis
    std::uint64_t longest_ = 0;       // along the axis
};

}  // namespace ddprun::trainer
