// Names, compares and searches rectangles.
#include "trainer/snapshot/slice.h"

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

namespace {

// Looks along one dimension after the other. Between two neighbouring edges of the rectangles the
// answer is the same everywhere, so one place of each such range is enough.
std::optional<Extents> gap_from(std::size_t dimension, const std::vector<const Rectangle*>& parts,
                                const Extents& whole) {
    if (dimension == whole.size()) {
        if (parts.empty()) return Extents();
        return std::nullopt;
    }
    Extents edges{0};
    for (const auto* part : parts) {
        edges.push_back(part->offset[dimension]);
        edges.push_back(part->offset[dimension] + part->shape[dimension]);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    for (const auto edge : edges) {
        if (edge >= whole[dimension]) break;
        std::vector<const Rectangle*> there;
        for (const auto* part : parts)
            if (part->offset[dimension] <= edge &&
                edge - part->offset[dimension] < part->shape[dimension])
                there.push_back(part);
        if (auto gap = gap_from(dimension + 1, there, whole)) {
            gap->insert(gap->begin(), edge);
            return gap;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<Extents> first_gap(const std::vector<Rectangle>& parts, const Extents& whole) {
    if (elements_of(whole) == 0u) return std::nullopt;
    std::vector<const Rectangle*> all;
    for (const auto& part : parts) all.push_back(&part);
    return gap_from(0, all, whole);
}

}  // namespace ddprun::trainer
