// Answers of nvidia-smi in its documented form.
#include "diagnosis/standstill/gpu_use.h"

#include <gmock/gmock.h>

namespace ddprun::agent {
namespace {

TEST(GpuUse, BelongsToTheProcessesOnIt) {
    const auto gpus = gpu_use("GPU-aa, 0, 100\nGPU-bb, 1, 0\nGPU-cc, 2, 7\n",
                              "GPU-aa, 4711\nGPU-bb, 4712\nGPU-cc, 4712\n");
    EXPECT_EQ(gpus_of(gpus, {4711}), "GPU 0 at 100 %");
    EXPECT_EQ(gpus_of(gpus, {12, 4712}), "GPU 1 at 0 %, GPU 2 at 7 %");
    EXPECT_EQ(gpus_of(gpus, {12}), "");
}

// A GPU that does not tell its use, a driver that has failed, and anything else.
TEST(GpuUse, LeavesOutWhatIsNoAnswer) {
    EXPECT_TRUE(gpu_use("", "").empty());
    EXPECT_TRUE(
        gpu_use("Failed to initialize NVML: Driver/library version mismatch\n", "").empty());
    EXPECT_TRUE(
        gpu_use("GPU-aa, 0, [N/A]\n, ,\n,,,\nGPU-bb, 99999999999999999999, 1", "x").empty());
    EXPECT_EQ(gpus_of(gpu_use("GPU-aa,0,5\r\n", "GPU-aa, [N/A]\nGPU-zz, 1\nGPU-aa, 1\r\n"), {1}),
              "GPU 0 at 5 %");
}

}  // namespace
}  // namespace ddprun::agent
