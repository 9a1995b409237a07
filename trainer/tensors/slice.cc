// Names and compares rectangles.
#include "trainer/tensors/slice.h"

namespace ddprun::trainer {

std::optional<std::uint64_t> elements_of(const Extents& shape) {
    std::uint64_t count = 1;
    for (auto extent : shape)
        if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
    return count;
}

// Subtracted and not added: a made-up offset must not wrap around.
bool lies_in(const Rectangle& part, const Extents& whole) {
    if (part.offset.size() != whole.size() || part.shape.size() != whole.size()) return false;
    for (std::size_t d = 0; d < whole.size(); ++d)
        if (part.offset[d] > whole[d] || part.shape[d] > whole[d] - part.offset[d]) return false;
    return true;
}

std::string describe_extents(const Extents& extents) {
    std::string text = "[";
    for (std::size_t d = 0; d < extents.size(); ++d)
        text += (d ? ", " : "") + std::to_string(extents[d]);
    return text + "]";
}

std::string describe_ranges(const Rectangle& part) {
    std::string text = "[";
    for (std::size_t d = 0; d < part.shape.size(); ++d)
        text += (d ? ", " : "") + std::to_string(part.offset[d]) + ":" +
                std::to_string(part.offset[d] + part.shape[d]);
    return text + "]";
}

std::string slice_name(const std::string& tensor, const Rectangle& part, const Extents& whole) {
    return part.shape == whole ? tensor : tensor + describe_ranges(part);
}

std::optional<Rectangle> common(const Rectangle& a, const Rectangle& b) {
    Rectangle both;
    for (std::size_t d = 0; d < a.shape.size(); ++d) {
        const auto begin = std::max(a.offset[d], b.offset[d]);
        const auto end = std::min(a.offset[d] + a.shape[d], b.offset[d] + b.shape[d]);
        if (begin >= end) return std::nullopt;
        both.offset.push_back(begin);
        both.shape.push_back(end - begin);
    }
    return both;
}

}  // namespace ddprun::trainer
