// Walks along the edges of rectangles.
#include "trainer/tensors/slice_cover.h"

#include <algorithm>
#include <map>

namespace ddprun::trainer {
namespace {

// A rectangle that is there so many times more from some edge on; negative: fewer.
struct Change {
    const Rectangle* part;
    std::int64_t times;
};

// By the ranges in this dimension and all behind it.
std::strong_ordering compare_from(std::size_t dimension, const Rectangle& a, const Rectangle& b) {
    for (std::size_t d = dimension; d < a.shape.size(); ++d) {
        if (auto order = a.offset[d] <=> b.offset[d]; order != 0) return order;
        if (auto order = a.shape[d] <=> b.shape[d]; order != 0) return order;
    }
    return std::strong_ordering::equal;
}

// One change for all that are equal from this dimension on, and none where they cancel out.
std::vector<Change> summed(std::size_t dimension, std::vector<Change> changes) {
    std::sort(changes.begin(), changes.end(), [&](const Change& a, const Change& b) {
        return compare_from(dimension, *a.part, *b.part) < 0;
    });
    std::vector<Change> sums;
    for (const auto& [part, times] : changes) {
        if (sums.empty() || compare_from(dimension, *sums.back().part, *part) != 0) {
            if (!sums.empty() && sums.back().times == 0) sums.pop_back();
            sums.push_back({part, 0});
        }
        sums.back().times += times;
    }
    if (!sums.empty() && sums.back().times == 0) sums.pop_back();
    return sums;
}

struct Walk {
    const Rectangle& whole;
    std::uint64_t edges = 0;

    // `changes` are summed(), so without a further dimension one is left at most.
    std::optional<WrongElement> from(std::size_t dimension, const std::vector<Change>& changes) {
        if (changes.empty()) return std::nullopt;
        // The whole itself counts as one time fewer.
        if (dimension == whole.shape.size()) return WrongElement{{}, changes[0].times + 1};
        std::map<std::uint64_t, std::vector<Change>> at_edge;
        for (const auto& [part, times] : changes) {
            at_edge[part->offset[dimension]].push_back({part, times});
            at_edge[part->offset[dimension] + part->shape[dimension]].push_back({part, -times});
            edges += 2;
        }
        for (auto& [edge, there] : at_edge) {
            if (edge - whole.offset[dimension] >= whole.shape[dimension]) break;
            auto found = from(dimension + 1, summed(dimension + 1, std::move(there)));
            if (!found) continue;
            found->at.insert(found->at.begin(), edge);
            return found;
        }
        return std::nullopt;
    }
};

bool has_elements(const Rectangle& part) {
    return std::find(part.shape.begin(), part.shape.end(), 0u) == part.shape.end();
}

}  // namespace

SliceCover cover_of(const std::vector<Rectangle>& parts, const Rectangle& whole) {
    if (!has_elements(whole)) return {};
    std::vector<Change> changes{{&whole, -1}};
    for (const auto& part : parts)
        if (has_elements(part)) changes.push_back({&part, 1});
    Walk walk{whole};
    SliceCover cover;
    cover.first = walk.from(0, summed(0, std::move(changes)));
    cover.edges = walk.edges;
    return cover;
}

}  // namespace ddprun::trainer
