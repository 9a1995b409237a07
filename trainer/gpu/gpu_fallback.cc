// gpu.h in a build without CUDA: there is no GPU, and each function that needs one fails.
#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {

int gpu_count() { return 0; }

std::string gpu_name(int) { return ""; }

std::string gpu_state() { return "built without CUDA"; }

namespace {
Error none() { return Error(ErrorCode::unavailable, "no GPU: " + gpu_state()); }
}  // namespace

Result<void*> gpu_allocate(std::size_t) { return none(); }
// There is nothing to free, because gpu_allocate() never succeeds.
void gpu_free(void*) {}
Result<void> gpu_copy(void*, const void*, std::size_t) { return none(); }
Result<void> gpu_zero(void*, std::size_t) { return none(); }
Result<double> gpu_square_sum(const float*, std::size_t) { return none(); }
Result<void> gpu_divide(float*, std::size_t, float) { return none(); }
Result<void> gpu_to_bfloat16(void*, const float*, std::size_t, float) { return none(); }
Result<void> gpu_from_bfloat16(float*, const void*, std::size_t) { return none(); }

}  // namespace ddprun::trainer
