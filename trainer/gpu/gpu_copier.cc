// A stream for copies.
#include "trainer/gpu/gpu_copier.h"

namespace ddprun::trainer {

Result<PinnedPages> PinnedPages::pin(void* memory, std::size_t bytes) {
    if (auto done = gpu_pin(memory, bytes); !done) return done.error();
    PinnedPages made;
    made.memory_.reset(memory);
    return made;
}

void PinnedPages::Unpin::operator()(void* memory) const { gpu_unpin(memory); }

Result<GpuCopier> GpuCopier::make() {
    auto stream = OwnGpuStream::make();
    if (!stream) return stream.error();
    GpuCopier made;
    made.stream_ = std::move(*stream);
    return made;
}

Result<void> GpuCopier::begin(GpuStream stream) {
    auto before = GpuEvent::record(stream);
    return before ? before->before(stream_.get()) : before.error();
}

Result<void> GpuCopier::copy(void* to, const void* from, std::size_t bytes) {
    return gpu_copy(to, from, bytes, stream_.get());
}

Result<GpuEvent> GpuCopier::end() { return GpuEvent::record(stream_.get()); }

}  // namespace ddprun::trainer
