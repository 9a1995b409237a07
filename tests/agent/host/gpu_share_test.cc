// Which GPUs a process sees, and how they are dealt to workers. Pure: GPUs and lists are made up.
#include "agent/host/gpu_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// GPU 0 near NUMA node 0, GPU 1 near node 1, none of them divided.
std::vector<Gpu> two() {
    return {{"0000:3b:00.0", "GPU-aaaa", 0, {}}, {"0000:d8:00.0", "GPU-bbbb", 1, {}}};
}

// CUDA ignores everything from the first invalid entry on, and uses no device if one is listed
// twice. Another reading would start more workers than CUDA gives devices to.
TEST(GpuShare, ListsAreReadAsCudaDoes) {
    EXPECT_THAT(devices_listed(""), IsEmpty());
    EXPECT_THAT(devices_listed("0,1, 2"), ElementsAre("0", "1", "2"));
    EXPECT_THAT(devices_listed("0,-1,2"), ElementsAre("0"));
    EXPECT_THAT(devices_listed("NoDevFiles"), IsEmpty());
    EXPECT_THAT(devices_listed("GPU-1a,MIG-2b"), ElementsAre("GPU-1a", "MIG-2b"));
    EXPECT_THAT(devices_listed("1,1"), IsEmpty());
    EXPECT_EQ(count_devices(two(), std::nullopt), 2);
    EXPECT_EQ(count_devices(two(), "1"), 1);
    EXPECT_EQ(visible_devices(two(), std::nullopt), (std::vector<std::string>{"0", "1"}));
    EXPECT_EQ(visible_devices(two(), "1"), std::vector<std::string>{"1"});
}

// A list may turn the order round, or name a GPU by the beginning of its id. Worker i must be bound
// near the GPU that it uses. If an entry is unknown (7), no answer is better than a wrong one.
TEST(GpuShare, NodesFollowTheList) {
    EXPECT_THAT(device_nodes(two(), std::nullopt), ElementsAre(0, 1));
    EXPECT_THAT(device_nodes(two(), "1,0"), ElementsAre(1, 0));
    EXPECT_THAT(device_nodes(two(), "GPU-bb"), ElementsAre(1));
    EXPECT_THAT(device_nodes(two(), "7"), IsEmpty());
}

// Output of `nvidia-smi -L`: GPU 0 is divided into two instances (MIG), GPU 1 is not.
constexpr const char* kSmi =
    "GPU 0: NVIDIA H100 (UUID: GPU-aaaa)\n"
    "  MIG 3g.40gb     Device  0: (UUID: MIG-1111)\n"
    "  MIG 3g.40gb     Device  1: (UUID: MIG-2222)\n"
    "GPU 1: NVIDIA H100 (UUID: GPU-bbbb)\n";

// CUDA cannot use a GPU that is divided, only its instances, and it has no index for them. So the
// two GPUs count as three devices: two by UUID, and one by index.
TEST(GpuShare, DividedGpusAreTheirInstances) {
    std::vector<Gpu> gpus = two();
    add_instances(gpus, kSmi);
    EXPECT_THAT(gpus[0].mig, ElementsAre("MIG-1111", "MIG-2222"));
    EXPECT_EQ(count_devices(gpus, std::nullopt), 3);
    EXPECT_THAT(visible_devices(gpus, std::nullopt), ElementsAre("MIG-1111", "MIG-2222", "1"));
    EXPECT_THAT(device_nodes(gpus, std::nullopt), ElementsAre(0, 0, 1));
    EXPECT_THAT(device_nodes(gpus, "MIG-2222"), ElementsAre(0));
    // An instance without a GPU above it belongs to nobody.
    add_instances(gpus, "nonsense\n  MIG (UUID: MIG-3)\n");
    EXPECT_EQ(gpus[0].mig.size(), 2u);
    const auto dealt = deal_devices(gpus, std::nullopt, std::nullopt, 2);
    EXPECT_THAT((*dealt)[1], testing::Contains(Pair("CUDA_VISIBLE_DEVICES", "MIG-2222")));
}

// Each worker sees one device and has LOCAL_RANK 0. The device is torchrun's choice: the worker's
// entry of the list, or its local rank if there is no list. With ROCm, HIP_VISIBLE_DEVICES decides.
// Too few entries are an error: two workers would share a GPU without anybody's wish.
TEST(GpuShare, VirtualLocalRank) {
    const auto plain = deal_devices({}, std::nullopt, std::nullopt, 2);
    EXPECT_THAT((*plain)[1],
                ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "1"), Pair("LOCAL_RANK", "0")));
    const auto listed = deal_devices({}, "3, GPU-b", std::nullopt, 2);
    EXPECT_THAT((*listed)[1],
                ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "GPU-b"), Pair("LOCAL_RANK", "0")));
    const auto rocm = deal_devices({}, "0,1", "5,6", 2);
    EXPECT_THAT((*rocm)[0], ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "5"),
                                        Pair("HIP_VISIBLE_DEVICES", "5"), Pair("LOCAL_RANK", "0")));
    EXPECT_THAT(deal_devices({}, "3", std::nullopt, 2).error().sentence(),
                HasSubstr("2 workers, but 1 device in \"3\"; give --nproc-per-node=1"));
}

}  // namespace
}  // namespace ddprun::agent
