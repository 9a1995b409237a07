// What GPUs do while workers stand still, as nvidia-smi says it. A kernel of NCCL that waits for
// other ranks keeps its GPU at 100 %, so "busy" does not mean that it computes. Pure.
//
// Source: nvidia-smi --help-query-gpu and --help-query-compute-apps; both answers without header
// and units. In a container the processes may have other numbers; then no GPU is known to be a
// worker's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

struct GpuUse {
    std::string uuid;
    std::string index;    // "3"
    std::string percent;  // of the last moments in which a kernel ran: "100"
    std::vector<std::int64_t> processes;
};

// The two questions.
std::vector<std::string> ask_for_gpus();
std::vector<std::string> ask_for_gpu_processes();

// From their answers: "uuid, index, utilization.gpu" and "gpu_uuid, pid" in each line. A line that
// is something else is left out.
std::vector<GpuUse> gpu_use(std::string_view gpus, std::string_view processes);

// "GPU 3 at 100 %" for the GPUs that any of these processes uses; "GPU 2 at 0 %, GPU 3 at 100 %".
// Empty: none is known.
std::string gpus_of(const std::vector<GpuUse>& gpus, const std::vector<std::int64_t>& processes);

}  // namespace ddprun::agent
