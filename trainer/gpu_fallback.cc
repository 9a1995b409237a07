#include "trainer/gpu.h"

namespace ddprun::trainer {

int gpu_count() { return 0; }

std::string gpu_name(int) { return ""; }

std::string gpu_state() { return "built without CUDA"; }

bool nccl_loads(std::string* why) {
    if (why) *why = gpu_state();
    return false;
}

}  // namespace ddprun::trainer
