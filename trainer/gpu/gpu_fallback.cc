// The GPU in a build without CUDA: there is none, and each function that needs one fails.
#include "trainer/gpu/gpu.h"
#include "trainer/gpu/gpu_math.h"
#include "trainer/gpu/gpu_stream.h"

namespace ddprun::trainer {

namespace {
Error none() { return Error(ErrorCode::unavailable, "no GPU: " + gpu_state()); }
}  // namespace

int gpu_count() { return 0; }
std::string gpu_name(int) { return ""; }
std::string gpu_state() { return "built without CUDA"; }
int gpu_current() { return -1; }
GpuTurn::GpuTurn(int) : chosen_(none()) {}
GpuTurn::~GpuTurn() = default;

Result<void*> gpu_allocate(std::size_t) { return none(); }
Result<void*> gpu_allocate_pinned(std::size_t) { return none(); }
// There is nothing to free, because nothing can be allocated.
void gpu_free(void*) {}
void gpu_free_pinned(void*) {}
Result<void> gpu_pin(void*, std::size_t) { return none(); }
void gpu_unpin(void*) {}
Result<void> gpu_copy(void*, const void*, std::size_t) { return none(); }
Result<void> gpu_copy(void*, const void*, std::size_t, GpuStream) { return none(); }
Result<void> gpu_zero(void*, std::size_t, GpuStream) { return none(); }

GpuStream gpu_legacy_stream() { return nullptr; }
GpuStream gpu_thread_stream() { return nullptr; }
Result<OwnGpuStream> OwnGpuStream::make(GpuPriority) { return none(); }
void OwnGpuStream::Destroy::operator()(GpuStream) const {}
Result<GpuEvent> GpuEvent::record(GpuStream) { return none(); }
Result<void> GpuEvent::before(GpuStream) const { return none(); }
Result<bool> GpuEvent::reached() const { return none(); }
Result<bool> GpuEvent::seen() const { return none(); }
Result<void> GpuEvent::wait() const { return none(); }
bool gpu_is_captured(GpuStream) { return false; }
void gpu_watches_only() {}

Result<void> gpu_add_square_sum(double*, const void*, GpuFloat, std::size_t, void*, GpuStream) {
    return none();
}
Result<void> gpu_clip(void*, GpuFloat, std::size_t, const double*, double, GpuStream) {
    return none();
}
Result<void> gpu_divide(void*, GpuFloat, std::size_t, double, GpuStream) { return none(); }
Result<void> gpu_narrow(void*, GpuFloat, const float*, std::size_t, float, GpuStream) {
    return none();
}
Result<void> gpu_widen(float*, const void*, GpuFloat, std::size_t, GpuStream) { return none(); }

}  // namespace ddprun::trainer
