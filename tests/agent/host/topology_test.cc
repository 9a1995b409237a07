// Reads CPUs, GPUs and CPU quotas from files. The files are copies of what kernel and driver show,
// in a folder of the test; the last test reads the real ones.
#include "agent/host/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "agent/host/hardware.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

// A made-up /sys and /proc, empty at the start. Each test writes only the files that it needs.
class Topology : public testing::Test {
  protected:
    Topology() {
        std::string pattern = fs::temp_directory_path() / "topologyXXXXXX";
        root_ = ::mkdtemp(pattern.data());
        roots_ = {root_ / "sys", root_ / "proc"};
    }
    ~Topology() override { fs::remove_all(root_); }

    void write(const std::string& file, const std::string& text) {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text << '\n';
    }

    fs::path root_;
    HostRoots roots_;
};

// CPU 3 shares its core with CPU 2, and its last-level cache with CPUs 0 to 3. Groups are named by
// their lowest CPU. The level-1 cache, which it has for itself, must not count as the last one.
TEST_F(Topology, ReadsWhatCpusShare) {
    write("sys/devices/system/node/node1/cpulist", "2-3");
    const std::string cpu = "sys/devices/system/cpu/cpu3/";
    write(cpu + "topology/physical_package_id", "1");
    write(cpu + "topology/thread_siblings_list", "2-3");
    write(cpu + "cache/index0/type", "Data");
    write(cpu + "cache/index0/level", "1");
    write(cpu + "cache/index0/shared_cpu_list", "3");
    write(cpu + "cache/index3/type", "Unified");
    write(cpu + "cache/index3/level", "3");
    write(cpu + "cache/index3/shared_cpu_list", "0-3");
    const std::vector<Cpu> cpus = read_cpus({3, 7}, roots_);
    EXPECT_EQ(cpus[0].numa_node, 1);
    EXPECT_EQ(cpus[0].package, 1);
    EXPECT_EQ(cpus[0].core, 2);
    EXPECT_EQ(cpus[0].cache, 0);
    // The kernel shows nothing of CPU 7 (as in some containers). It then stands alone, in node 0.
    EXPECT_EQ(cpus[1].core, 7);
    EXPECT_EQ(cpus[1].numa_node, 0);
}

// The driver writes PCI addresses in upper case, and sysfs has them in lower case. The result is in
// the order of the bus.
TEST_F(Topology, FindsGpusOfTheDriver) {
    write("proc/driver/nvidia/gpus/0000:D8:00.0/information", "GPU UUID: \t GPU-b");
    write("proc/driver/nvidia/gpus/0000:3B:00.0/information", "Model: X\nGPU UUID: \t GPU-a");
    write("sys/bus/pci/devices/0000:d8:00.0/numa_node", "1");
    const std::vector<Gpu> gpus = find_gpus(roots_).gpus;
    ASSERT_EQ(gpus.size(), 2u);
    EXPECT_EQ(gpus[0].address, "0000:3b:00.0");
    EXPECT_EQ(gpus[0].uuid, "GPU-a");
    EXPECT_EQ(gpus[0].numa_node, -1);
    EXPECT_EQ(gpus[1].numa_node, 1);
}

// A container may hide the driver's folder but still show the bus. Device 01 is a GPU. Device 02 is
// the sound card of a GPU (class 0403), and device 03 was given to a virtual machine: neither can
// train.
TEST_F(Topology, FindsGpusOnTheBus) {
    fs::create_directories(root_ / "sys/bus/pci/drivers/nvidia");
    for (const char* name : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}) {
        const std::string device = std::string("sys/bus/pci/devices/") + name;
        write(device + "/vendor", "0x10de");
        write(device + "/class", name[6] == '2' ? "0x040300" : "0x030200");
        fs::create_symlink(name[6] == '3' ? "../../drivers/vfio-pci" : "../../drivers/nvidia",
                           root_ / device / "driver");
    }
    const std::vector<Gpu> gpus = find_gpus(roots_).gpus;
    ASSERT_EQ(gpus.size(), 1u);
    EXPECT_EQ(gpus[0].address, "0000:01:00.0");
    EXPECT_TRUE(find_gpus({"/nonexistent", "/nonexistent"}).gpus.empty());
}

// The driver's files do not name the instances of a GPU that is divided; nvidia-smi does. It may
// take seconds, so it is asked only then. The one here is a script that refuses other arguments
// than -L.
TEST_F(Topology, AsksNvidiaSmiForTheInstancesOfADividedGpu) {
    write("proc/driver/nvidia/gpus/0000:3B:00.0/information", "GPU UUID: \t GPU-a");
    const std::string program = root_ / "bin/nvidia-smi";
    write("bin/nvidia-smi",
          "#!/bin/sh\n[ \"$1\" = -L ] || exit 1\necho 'GPU 0: H100 (UUID: GPU-a)'\n"
          "echo '  MIG 3g.40gb     Device  0: (UUID: MIG-1)'\n"
          "echo '  MIG 3g.40gb     Device  1: (UUID: MIG-2)'");
    fs::permissions(program, fs::perms::owner_all);
    const std::string path = ::getenv("PATH");
    ::setenv("PATH", ((root_ / "bin").string() + ":" + path).c_str(), 1);
    // Not divided yet: nvidia-smi is not asked.
    EXPECT_TRUE(find_gpus(roots_).gpus.at(0).mig.empty());
    write("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "x");
    EXPECT_THAT(find_gpus(roots_).gpus.at(0).mig, testing::ElementsAre("MIG-1", "MIG-2"));
    EXPECT_EQ(find_gpus(roots_).fault, "");
    ::setenv("PATH", "/nonexistent", 1);
    EXPECT_THAT(find_gpus(roots_).fault, testing::StartsWith("cannot start nvidia-smi: "));
    ::setenv("PATH", path.c_str(), 1);
}

// A job may be limited by a group above its own. The tightest limit on the way to the root holds.
// It bounds the number of CPUs that ddprun counts on.
TEST_F(Topology, ReadsTheQuota) {
    EXPECT_EQ(cpu_quota(roots_), std::nullopt);
    // cgroup version 2: 1.5 CPUs for the parent, no limit ("max") for the group itself.
    write("proc/self/cgroup", "0::/a/b");
    write("sys/fs/cgroup/a/cpu.max", "150000 100000");
    write("sys/fs/cgroup/a/b/cpu.max", "max 100000");
    EXPECT_EQ(cpu_quota(roots_), 1.5);
    // Version 1: quota and period are in two files, under the controller's own folder.
    write("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/job");
    write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000");
    write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
    EXPECT_EQ(cpu_quota(roots_), 0.5);
}

// On the real /sys of this machine: every CPU that the test may use is described, and can be
// shared.
TEST(TopologyHere, KnowsEveryAllowedCpu) {
    const std::vector<int> allowed = allowed_cpus();
    EXPECT_EQ(read_cpus(allowed).size(), allowed.size());
    EXPECT_TRUE(share_cpus(CpuBinding::node, read_cpus(allowed), {}, 1));
}

}  // namespace
}  // namespace ddprun::agent
