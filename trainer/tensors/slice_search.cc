// Sorts slices, and cuts out a range of them.
#include "trainer/tensors/slice_search.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace ddprun::trainer {
namespace {

std::size_t most_cut(const std::vector<Rectangle>& parts) {
    std::size_t best = 0, cuts = 0;
    for (std::size_t d = 0; !parts.empty() && d < parts[0].offset.size(); ++d) {
        std::set<std::uint64_t> offsets;
        for (const auto& part : parts) offsets.insert(part.offset[d]);
        if (offsets.size() <= cuts) continue;
        best = d;
        cuts = offsets.size();
    }
    return best;
}

}  // namespace

SliceSearch::SliceSearch(std::vector<Rectangle> parts)
    : parts_(std::move(parts)), axis_(most_cut(parts_)), order_(parts_.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (parts_.empty() || parts_[0].shape.empty()) return;
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
        return parts_[a].offset[axis_] < parts_[b].offset[axis_];
    });
    for (const auto& part : parts_) longest_ = std::max(longest_, part.shape[axis_]);
}

std::vector<std::size_t> SliceSearch::near(const Rectangle& target) const {
    // A single number: all are it.
    if (target.shape.empty()) return order_;
    const auto offset = [&](std::size_t index) { return parts_[index].offset[axis_]; };
    const std::uint64_t begin = target.offset[axis_], end = begin + target.shape[axis_];
    const auto first = std::partition_point(order_.begin(), order_.end(), [&](std::size_t index) {
        return offset(index) <= begin && begin - offset(index) >= longest_;
    });
    const auto last = std::partition_point(first, order_.end(),
                                           [&](std::size_t index) { return offset(index) < end; });
    std::vector<std::size_t> found(first, last);
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace ddprun::trainer
