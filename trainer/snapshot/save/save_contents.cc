// Reads samples of tensors in host memory.
#include "trainer/snapshot/save/save_contents.h"

#include <algorithm>
#include <string_view>

#include "base/hexadecimal.h"
#include "trainer/checksum/hash_sample.h"
#include "trainer/group/rank_names.h"

namespace ddprun::trainer {
namespace {

constexpr std::size_t kHashDigits = 16;

}  // namespace

std::string contents_of(const std::vector<TensorView>& tensors, std::uint64_t turn) {
    std::vector<const TensorView*> shared;
    for (const auto& tensor : tensors)
        if (!tensor.place) shared.push_back(&tensor);
    std::sort(shared.begin(), shared.end(),
              [](const TensorView* a, const TensorView* b) { return a->name < b->name; });
    std::vector<std::size_t> sizes;
    for (const auto* tensor : shared) sizes.push_back(tensor->data.size());
    const auto hashes = hash_sample(sizes, turn, kSmallSample,
                                    [&](std::size_t index, std::size_t first,
                                        std::size_t count) -> Result<std::span<const std::byte>> {
                                        return shared[index]->data.subspan(first, count);
                                    });
    std::string text;
    for (const std::uint64_t hash : *hashes) text += hexadecimal(hash, kHashDigits);
    return text;
}

Result<void> compare_contents(const std::set<std::string>& names,
                              const std::vector<std::string>& contents) {
    std::size_t at = 0;
    for (const auto& name : names) {
        std::vector<std::string_view> all;
        for (const auto& text : contents)
            all.push_back(std::string_view(text).substr(std::min(at, text.size()), kHashDigits));
        at += kHashDigits;
        const auto count = [&](std::size_t rank) {
            return std::count(all.begin(), all.end(), all[rank]);
        };
        std::size_t most = 0;
        std::vector<int> odd;
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            if (count(rank) > count(most)) most = rank;
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            if (all[rank] != all[most]) odd.push_back(static_cast<int>(rank));
        if (odd.empty()) continue;
        return Error(ErrorCode::refused,
                     "tensor \"" + name + "\" is not the same on " + name_ranks(odd) +
                         " as on rank " + std::to_string(most) +
                         "; make it equal on all ranks before save() (buffers of a module: "
                         "broadcast_buffers()), or save each rank's own with only_here() or "
                         "slice_of()");
    }
    return {};
}

}  // namespace ddprun::trainer
