// Divides the CPUs of a made-up host among workers (--numa-binding). Pure: nothing is bound.
#include "agent/host/cpu_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 32 CPUs: two sockets with two NUMA nodes each, four cores in a node, two threads in a core (CPU n
// and n + 16), and two cores behind each last-level cache. So each of the four bindings gives
// another answer.
std::vector<Cpu> host() {
    std::vector<Cpu> cpus;
    for (int number = 0; number < 32; ++number) {
        const int core = number % 16;
        cpus.push_back({.number = number,
                        .numa_node = core / 4,
                        .package = core / 8,
                        .core = core,
                        .cache = core / 2 * 2});
    }
    return cpus;
}

std::vector<std::vector<int>> shares(CpuBinding binding, std::vector<int> nodes, int workers) {
    return share_cpus(binding, host(), std::move(nodes), workers).value();
}

// A worker gets all CPUs of its GPU's node, with both threads of each core, or all of the socket.
TEST(CpuShare, NodeAndSocketOfTheGpu) {
    EXPECT_THAT(shares(CpuBinding::node, {1}, 1)[0], ElementsAre(4, 5, 6, 7, 20, 21, 22, 23));
    EXPECT_THAT(shares(CpuBinding::socket, {3}, 1)[0],
                ElementsAre(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
    // A kernel that does not know the node of the GPU says -1. Such a host has one node, number 0.
    EXPECT_THAT(shares(CpuBinding::node, {-1}, 1)[0], ElementsAre(0, 1, 2, 3, 16, 17, 18, 19));
}

// Three GPUs share the four cores of node 0, and the first of them gets the core that is left over.
// The GPU on node 2 shares with nobody. Two workers on the threads of one core would slow each
// other down, so cores stay whole, and five workers for four cores are refused.
TEST(CpuShare, ExclusiveCores) {
    const auto three = shares(CpuBinding::exclusive, {0, 2, 0, 0}, 4);
    EXPECT_THAT(three[0], ElementsAre(0, 1, 16, 17));
    EXPECT_THAT(three[1], ElementsAre(8, 9, 10, 11, 24, 25, 26, 27));
    EXPECT_THAT(three[2], ElementsAre(2, 18));
    EXPECT_THAT(three[3], ElementsAre(3, 19));
    const auto refused = share_cpus(CpuBinding::exclusive, host(), {0, 0, 0, 0, 0}, 5);
    EXPECT_THAT(refused.error().sentence(), HasSubstr("4 cores for 5 workers"));
}

// Node 0 has two caches for three GPUs: the third one starts again at the first cache, as torchrun
// does.
TEST(CpuShare, CoreComplexes) {
    const auto share = shares(CpuBinding::core_complex, {0, 0, 0}, 3);
    EXPECT_THAT(share[0], ElementsAre(0, 1, 16, 17));
    EXPECT_THAT(share[1], ElementsAre(2, 3, 18, 19));
    EXPECT_EQ(share[2], share[0]);
}

// A cpuset has taken CPU 0 away, so the first cache has three CPUs and the second one four. The
// larger one goes first.
TEST(CpuShare, LargestComplexFirst) {
    std::vector<Cpu> cut = host();
    cut.erase(cut.begin());
    EXPECT_THAT((*share_cpus(CpuBinding::core_complex, cut, {0, 0}, 2))[0],
                ElementsAre(2, 3, 18, 19));
}

// torchrun fails on a host without GPUs. Here the nodes are dealt out in order, so that workers
// with neighbouring ranks are near each other: two workers take nodes 0 and 2, one on each socket.
TEST(CpuShare, NodesAreDealtWithoutGpus) {
    const auto share = shares(CpuBinding::node, {}, 2);
    EXPECT_EQ(share[0].front(), 0);
    EXPECT_EQ(share[1].front(), 8);
    const auto cores = shares(CpuBinding::exclusive, {}, 8);
    EXPECT_THAT(cores[0], ElementsAre(0, 1, 16, 17));
    EXPECT_THAT(cores[1], ElementsAre(2, 3, 18, 19));
}

// Workers 1 and 3 both use GPU 1.
TEST(CpuShare, MoreWorkersThanGpusShareThem) {
    EXPECT_EQ(shares(CpuBinding::node, {0, 1}, 4)[3], shares(CpuBinding::node, {0, 1}, 4)[1]);
}

// Slurm may bind the job to CPUs that are all far from a GPU. An empty share would mean "all CPUs",
// so the worker would run unbound without a word. The error names the GPU and the node instead.
TEST(CpuShare, RefusesANodeWithoutCpus) {
    std::vector<Cpu> first(host());
    std::erase_if(first, [](const Cpu& cpu) { return cpu.numa_node != 0; });
    EXPECT_THAT(share_cpus(CpuBinding::node, first, {0, 2}, 2).error().sentence(),
                HasSubstr("GPU 1 is near NUMA node 2"));
    EXPECT_FALSE(share_cpus(CpuBinding::node, {}, {}, 1));
}

// Reading stops at the first thing that does not fit, and a damaged range must not fill the memory.
TEST(CpuShare, ReadsTheKernelsLists) {
    EXPECT_THAT(read_cpu_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
    EXPECT_THAT(read_cpu_list("5\n"), ElementsAre(5));
    EXPECT_THAT(read_cpu_list(""), ElementsAre());
    EXPECT_THAT(read_cpu_list("1,x"), ElementsAre(1));
    EXPECT_THAT(read_cpu_list("0-99999999999"), ElementsAre());
}

}  // namespace
}  // namespace ddprun::agent
