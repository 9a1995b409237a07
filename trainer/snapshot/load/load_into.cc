// The program's tensors as views, and copies between them and a snapshot in memory.
#include "trainer/snapshot/load/load_into.h"

#include <cstring>

#include "trainer/gpu/gpu.h"
#include "trainer/snapshot/load/fill_tensors.h"

namespace ddprun::trainer {

std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
    std::vector<TensorView> views;
    for (const auto& tensor : tensors)
        views.push_back({tensor.name, tensor.type, tensor.shape, tensor.data, tensor.place});
    return views;
}

decltype(LoadOptions::copy) copy_to_gpu() {
    return [](const Tensor& to, std::span<const std::byte> from) {
        return gpu_copy(to.data.data(), from.data(), from.size());
    };
}

Result<void> load_into(const Snapshot& snapshot, const std::vector<Tensor>& tensors,
                       const LoadOptions& options) {
    const auto gather = [](std::byte* to, std::span<const std::byte> from) -> Result<void> {
        std::memcpy(to, from.data(), from.size());
        return {};
    };
    return fill_tensors("snapshot " + snapshot.manifest.name.stem(), snapshot.content.tensors,
                        tensors, options, gather);
}

}  // namespace ddprun::trainer
