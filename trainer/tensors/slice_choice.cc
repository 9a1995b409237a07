// Deals slices over the ranks that have them.
#include "trainer/tensors/slice_choice.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ddprun::trainer {
namespace {

std::uint64_t bytes_of(const SliceEntry& slice) {
    return elements_of(slice.part.shape).value_or(0) * size_of(slice.type);
}

// One slice, and where it lies in the lists of the ranks that bring it.
struct Replicas {
    std::uint64_t bytes = 0;
    std::vector<std::pair<std::size_t, std::size_t>> at;  // rank, index in its list
};

// In the order of their places in the tensors, which is the same in every run.
std::vector<Replicas> replicas_in(const std::vector<std::vector<SliceEntry>>& ranks) {
    std::map<std::pair<std::string, std::pair<Extents, Extents>>, Replicas> found;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
            const SliceEntry& slice = ranks[rank][i];
            auto& same = found[{slice.tensor, {slice.part.offset, slice.part.shape}}];
            same.bytes = bytes_of(slice);
            same.at.emplace_back(rank, i);
        }
    std::vector<Replicas> all;
    for (auto& [place, same] : found) all.push_back(std::move(same));
    return all;
}

}  // namespace

std::vector<std::vector<SliceEntry>> choose_writers(
    const std::vector<std::vector<SliceEntry>>& ranks) {
    auto slices = replicas_in(ranks);
    // First those without a choice, so that the others can even out what these leave.
    std::stable_sort(slices.begin(), slices.end(), [](const Replicas& a, const Replicas& b) {
        const bool fixed_a = a.at.size() == 1, fixed_b = b.at.size() == 1;
        return fixed_a != fixed_b ? fixed_a : a.bytes > b.bytes;
    });
    std::vector<std::uint64_t> bytes(ranks.size());
    std::vector<std::vector<std::size_t>> chosen(ranks.size());
    for (const auto& slice : slices) {
        const auto& [rank, index] = *std::min_element(
            slice.at.begin(), slice.at.end(),
            [&](const auto& a, const auto& b) { return bytes[a.first] < bytes[b.first]; });
        bytes[rank] += slice.bytes;
        chosen[rank].push_back(index);
    }
    std::vector<std::vector<SliceEntry>> written(ranks.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        std::sort(chosen[rank].begin(), chosen[rank].end());
        for (std::size_t index : chosen[rank]) written[rank].push_back(ranks[rank][index]);
    }
    return written;
}

}  // namespace ddprun::trainer
