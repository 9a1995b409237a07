// Files that are read again and again, of /proc and others.
#include "base/system/small_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

TEST(KeptFile, HasNewTextEachTime) {
    const Folder folder;
    const std::string path = folder / "file";
    std::ofstream(path) << "one";
    KeptFile file(path);
    EXPECT_EQ(file.read(), "one");
    std::ofstream(path) << "two words";
    EXPECT_EQ(file.read(), "two words");
}

// A file of /proc belongs to its process: another one that gets the same number is not read.
TEST(KeptFile, IsEmptyWhenTheProcessHasEnded) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    KeptFile file("/proc/" + std::to_string(child) + "/stat");
    EXPECT_NE(file.read(), "");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(file.read(), "");
}

TEST(KeptFile, MayComeLater) {
    const Folder folder;
    KeptFile file(folder / "file");
    EXPECT_EQ(file.read(), "");
    std::ofstream(folder / "file") << "there";
    EXPECT_EQ(file.read(), "there");
}

// While there are many descriptors, this takes none for good.
TEST(KeptFile, KeepsNoDescriptorAmongMany) {
    const int many = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 512);
    ASSERT_GE(many, 0) << "ulimit -n";
    // The lower ones are taken, so the next one is above.
    std::vector<int> taken;
    for (int next = 0; next < 512;) {
        next = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
        ASSERT_GE(next, 0);
        taken.push_back(next);
    }
    KeptFile file("/proc/self/stat");
    EXPECT_NE(file.read(), "");
    const int free = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    EXPECT_EQ(free, taken.back() + 1);
    for (const int each : taken) ::close(each);
    ::close(free);
    ::close(many);
    EXPECT_NE(file.read(), "");
}

}  // namespace
}  // namespace ddprun
