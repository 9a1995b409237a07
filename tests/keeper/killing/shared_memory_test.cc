// What is removed from shared memory after a generation, and above all what stays. The files are in
// a folder of the test, the System V segments are real ones of this host.
#include "keeper/killing/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

// Pids that most hosts never reach, so no process has them.
constexpr pid_t kOurs = 4'000'001, kOther = 4'000'002;

class SharedMemoryTest : public testing::Test {
  protected:
    SharedMemoryTest() { std::filesystem::create_directories(folder_); }
    ~SharedMemoryTest() override { std::filesystem::remove_all(folder_); }

    // A file as a process leaves it: with content, and open in no process.
    std::string make(const std::string& name) {
        std::ofstream(folder_ + '/' + name) << "bytes";
        return folder_ + '/' + name;
    }
    bool there(const std::string& path) { return std::filesystem::exists(path); }

    // Leases, which prove that nobody has a file open, do not work on every file system. They do on
    // tmpfs.
    std::string folder_ = (there("/dev/shm") ? "/dev/shm" : testing::TempDir()) +
                          "/shared_memory_test." + std::to_string(::getpid());
    SharedMemory memory_{folder_, true};
};

// Tensors of PyTorch and heaps of multiprocessing have the pid of their process in their names.
// Left behind, they would fill the memory of the node restart by restart.
TEST_F(SharedMemoryTest, WhatItsProcessesMadeGoes) {
    const std::string tensor = make("torch_4000001_7_0"), heap = make("pym-4000001-abc");
    memory_.belongs(kOurs);
    memory_.remove();
    EXPECT_FALSE(there(tensor));
    EXPECT_FALSE(there(heap));
}

// Other pids (one of which begins with ours), names that are not complete, and names that a program
// chose itself: a snapshot in memory must survive the restart. "psm_" and "sem.mp-" are Python's,
// but name no owner.
TEST_F(SharedMemoryTest, WhatOthersMadeOrNamedStays) {
    memory_.belongs(kOurs);
    for (const char* name : {"torch_4000002_7_0", "torch_40000012_7_0", "torch_4000001", "torch_",
                             "cache", "psm_0123abcd", "sem.mp-abcdefgh", "nccl-snapshot"})
        make(name);
    std::filesystem::create_directory(folder_ + "/nccl-folder");
    memory_.remove();
    // All eight files and the folder.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 9);
}

// NCCL keeps its file open as long as it lives, so an open one is in use, perhaps by another job.
TEST_F(SharedMemoryTest, WhatIsStillOpenStays) {
    memory_.belongs(kOurs);
    const std::string tensor = make("torch_4000001_7_0"), nccl = make("nccl-a1B2c3");
    const UniqueFd open(::open(nccl.c_str(), O_RDWR | O_CLOEXEC));
    memory_.remove();
    EXPECT_FALSE(there(tensor));
    EXPECT_TRUE(there(nccl));
}

// Nobody failed, so what lies there is of others, and is not even looked at: how much that is must
// cost a job nothing. What has a pid of ours goes all the same.
TEST_F(SharedMemoryTest, AfterASuccessOnlyItsProcessesObjectsGo) {
    memory_.belongs(kOurs);
    const std::string tensor = make("torch_4000001_7_0"), nccl = make("nccl-a1B2c3");
    memory_.remove(true);
    EXPECT_FALSE(there(tensor));
    EXPECT_TRUE(there(nccl));
    memory_.remove();
    EXPECT_FALSE(there(nccl));
}

// The tensor has our pid but is an hour old: the kernel has used the pid before.
TEST_F(SharedMemoryTest, WhatIsOlderStays) {
    memory_.belongs(kOurs);
    const std::string tensor = make("torch_4000001_7_0"), nccl = make("nccl-a1B2c3");
    const timespec hour_ago[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, tensor.c_str(), hour_ago, 0), 0);
    memory_.remove();
    EXPECT_TRUE(there(tensor));
    EXPECT_FALSE(there(nccl));
}

// A loader's process died long before its worker, and nobody remembers its pid. Only PyTorch's own
// janitor can remove its tensors, so the caller has to know that there are some.
TEST_F(SharedMemoryTest, TensorsOfADeadProcessThatIsUnknownAreToldOf) {
    make("torch_4000002_7_0");
    memory_.belongs(kOurs);
    EXPECT_TRUE(memory_.tensors_of_unknown());
    memory_.belongs(kOther);
    EXPECT_FALSE(memory_.tensors_of_unknown());
    // This process lives, so the file belongs to a stranger.
    make("torch_" + std::to_string(::getpid()) + "_7_0");
    EXPECT_FALSE(memory_.tensors_of_unknown());
}

// A container that shares /dev/shm has processes with the same numbers, and its tensors are open in
// none of them while they are on their way.
TEST_F(SharedMemoryTest, TensorsStayWhereOtherPidsCannotBeSeen) {
    SharedMemory apart(folder_, false);
    apart.belongs(kOurs);
    const std::string tensor = make("torch_4000001_7_0"), heap = make("pym-4000001-abc");
    EXPECT_TRUE(apart.tensors_of_unknown());
    apart.remove();
    EXPECT_TRUE(there(tensor));
    EXPECT_FALSE(there(heap));
}

// The same, seen from the host: a process below has the number of one of ours.
TEST_F(SharedMemoryTest, TensorsOfANumberThatIsUsedInAContainerStay) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t maker = ::fork();
    if (maker == 0) {
        const bool apart = ::unshare(CLONE_NEWPID) == 0;
        const pid_t first = apart ? ::fork() : -1;  // number 1 in there
        if (first == 0) ::_exit(::pause());
        ::_exit(::write(ends[1], &first, sizeof first) == sizeof first ? 0 : 1);
    }
    pid_t first = -1;
    ASSERT_EQ(::read(ends[0], &first, sizeof first), static_cast<ssize_t>(sizeof first));
    ::waitpid(maker, nullptr, 0);
    if (first < 0) GTEST_SKIP() << "no PID namespace can be made here";
    memory_.belongs(1);
    memory_.belongs(kOurs);
    const std::string its = make("torch_1_7_0"), ours = make("torch_4000001_7_0");
    memory_.remove();
    ::kill(first, SIGKILL);
    EXPECT_TRUE(there(its));
    EXPECT_FALSE(there(ours));
}

// System V segments live until somebody removes them or the host restarts. Without a key nobody can
// find one whose creator is dead. One with a key may be meant for the next process.
TEST_F(SharedMemoryTest, SegmentsWithoutAKeyGoWithTheirCreator) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        // The key contains the pid, so that runs of this test at the same time do not share a
        // segment.
        const int ids[2] = {::shmget(IPC_PRIVATE, 4096, 0600),
                            ::shmget(0x40000000 + ::getpid(), 4096, IPC_CREAT | 0600)};
        ::_exit(::write(ends[1], ids, sizeof ids) == sizeof ids ? 0 : 1);
    }
    int ids[2];
    ASSERT_EQ(::read(ends[0], ids, sizeof ids), static_cast<ssize_t>(sizeof ids));
    ::waitpid(child, nullptr, 0);
    const int mine = ::shmget(IPC_PRIVATE, 4096, 0600);
    memory_.belongs(child);
    memory_.remove();
    shmid_ds status;
    EXPECT_NE(::shmctl(ids[0], IPC_STAT, &status), 0);
    EXPECT_EQ(::shmctl(ids[1], IPC_STAT, &status), 0) << "it has a key";
    EXPECT_EQ(::shmctl(mine, IPC_STAT, &status), 0) << "a stranger has made it";
    // What stays is the test's to remove, or it would stay on this host.
    ::shmctl(ids[1], IPC_RMID, nullptr);
    ::shmctl(mine, IPC_RMID, nullptr);
}

}  // namespace
}  // namespace ddprun::agent
