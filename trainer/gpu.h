// Which GPUs this process sees. One header, two sources: gpu_cuda.cc when the build found CUDA,
// gpu_fallback.cc else.
//
// Links the static CUDA runtime only: a program with it starts where there is no driver, and sees
// no GPU there.
#pragma once

#include <string>

namespace ddprun::trainer {

// GPUs that are visible and usable now; 0 without a driver or without CUDA in the build. Any
// thread.
int gpu_count();

// A name that no other GPU of the job has: host name and PCI address (for a MIG slice also its
// UUID). Empty on error.
std::string gpu_name(int index);

// Why there are as many as there are, for a message: "2 GPUs", "no NVIDIA driver", "built without
// CUDA".
std::string gpu_state();

// Whether the NCCL library can be loaded now; `why` says what was wrong.
bool nccl_loads(std::string* why);

}  // namespace ddprun::trainer
