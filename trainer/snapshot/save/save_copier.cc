// Copies by a function, or on a stream.
#include "trainer/snapshot/save/save_copier.h"

#include <algorithm>

namespace ddprun::trainer {
namespace {

using Files = std::vector<std::vector<TensorView>>;

// 0 where the head is an error, which lay_out() reports.
std::size_t file_bytes(const std::vector<TensorView>& file) {
    const auto head = safetensors_head(file, {{"format", "pt"}});
    std::size_t bytes = head ? head->size() : 0;
    for (const auto& tensor : file) bytes += tensor.data.size();
    return bytes;
}

}  // namespace

Result<SaveCopier> SaveCopier::make(CopyTensor copy, const std::optional<GpuTensors>& gpu) {
    SaveCopier made;
    made.copy_ = copy ? std::move(copy) : copy_bytes;
    if (!gpu) return made;
    auto copier = GpuCopier::make();
    if (!copier) return copier.error();
    made.gpu_ = Gpu{*gpu, gpu_current(), std::move(*copier), {}};
    return made;
}

Result<void> SaveCopier::reserve(Memory& memory, const Files& files) const {
    std::optional<GpuTurn> turn;
    if (gpu_) turn.emplace(gpu_->index);
    // Never fewer: a buffer that is not needed now keeps its pages for a later snapshot.
    memory.files.resize(std::max(memory.files.size(), files.size()));
    for (std::size_t i = 0; i < files.size(); ++i) {
        auto& [pages, pinned] = memory.files[i];
        const std::size_t bytes = file_bytes(files[i]);
        // Pages that are given back must not be pinned any more.
        if (bytes > pages.room()) pinned = {};
        if (auto done = pages.resize(bytes); !done) return done;
        if (!gpu_ || pinned || !pages.room()) continue;
        // Where nothing can be pinned the copies are slower, and right all the same.
        if (auto made = PinnedPages::pin(pages.bytes().data(), pages.room()); made)
            pinned = std::move(*made);
    }
    return {};
}

Result<void> SaveCopier::lay_out_all(Memory& memory, const Files& files,
                                     const CopyTensor& copy) const {
    if (auto done = reserve(memory, files); !done) return done;
    for (std::size_t i = 0; i < files.size(); ++i)
        if (auto done = lay_out(files[i], memory.files[i].pages, copy); !done) return done;
    return {};
}

Result<void> SaveCopier::copy(Memory& memory, const Files& files) {
    if (!gpu_) return lay_out_all(memory, files, copy_);
    const GpuTurn turn(gpu_->index);
    if (!turn.chosen()) return turn.chosen();
    if (auto done = gpu_->copier.begin(gpu_->tensors.stream); !done) return done;
    const auto copied = lay_out_all(memory, files, [this](std::byte* to, const TensorView& tensor) {
        if (tensor.data.empty()) return Result<void>();
        return gpu_->copier.copy(to, tensor.data.data(), tensor.data.size());
    });
    // Also after an error: the memory is in use until the copies before it are done.
    auto end = gpu_->copier.end();
    if (!end) return end.error();
    memory.copied = gpu_->last = *end;
    if (!copied || gpu_->tensors.beside) return copied;
    return end->before(gpu_->tensors.stream);
}

Result<void> SaveCopier::settle(Memory& memory) const {
    if (!memory.copied) return {};
    const GpuTurn turn(gpu_->index);
    return std::exchange(memory.copied, {}).wait();
}

Result<void> SaveCopier::before_change(GpuStream stream) const {
    return gpu_ && gpu_->last ? gpu_->last.before(stream) : Result<void>();
}

}  // namespace ddprun::trainer
