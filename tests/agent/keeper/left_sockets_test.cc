// Which socket files of dead processes are removed, and above all which ones stay. The sockets are
// real and lie in a folder of the test. A file too many that stays does no harm; one that a living
// process needs must never go.
#include "agent/keeper/left_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

class LeftSocketsTest : public testing::Test {
  protected:
    LeftSocketsTest() { std::filesystem::create_directories(folder_); }
    ~LeftSocketsTest() override { std::filesystem::remove_all(folder_); }

    // Makes a socket file at FOLDER/NAME. It belongs to nobody as soon as the result is destroyed:
    // the file stays without its process, as after SIGKILL. Without `listening`, the socket is only
    // bound.
    UniqueFd listen_at(const std::string& name, bool listening = true) {
        const std::filesystem::path path = folder_ + '/' + name;
        std::filesystem::create_directories(path.parent_path());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::ranges::copy(path.native(), address.sun_path);
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        if (listening) {
            EXPECT_EQ(::listen(socket.get(), 1), 0);
        }
        return socket;
    }
    bool there(const std::string& name) { return std::filesystem::exists(folder_ + '/' + name); }

    std::string folder_ =
        std::filesystem::path(testing::TempDir()) / ("sockets." + std::to_string(::getpid()));
    // The second folder does not exist, which is no error: not every host has all of them.
    LeftSockets left_{{folder_, folder_ + "/there-is-none"}};
};

// Python's multiprocessing and PyTorch's manager were killed. The manager's folder goes, too, since
// nobody else uses it.
TEST_F(LeftSocketsTest, WhoseListenerIsGoneGo) {
    listen_at("pymp-abc12_de/listener-0");
    listen_at("torch-shm-dir-Ab3xyz/manager.sock");
    left_.remove();
    EXPECT_FALSE(there("pymp-abc12_de/listener-0"));
    EXPECT_FALSE(there("torch-shm-dir-Ab3xyz"));
}

// The only socket in Python's folder belonged to a child that has died. Its parent may live, and
// creates its folder only once: without the folder, its next socket would fail.
TEST_F(LeftSocketsTest, TheFolderOfAProcessThatMayLiveStays) {
    listen_at("pymp-abc/listener-of-a-child");
    left_.remove();
    EXPECT_FALSE(there("pymp-abc/listener-of-a-child"));
    EXPECT_TRUE(there("pymp-abc"));
}

// One socket listens, one is bound but does not listen yet, one is dead. The kernel refuses calls
// to the last two alike. So a call alone does not decide: it would remove a socket that is being
// made.
TEST_F(LeftSocketsTest, WhatSomebodyHasBoundStays) {
    const UniqueFd listens = listen_at("pymp-abc/listener"),
                   bound = listen_at("pymp-abc/bound", false);
    listen_at("pymp-abc/dead");
    left_.remove();
    EXPECT_TRUE(there("pymp-abc/listener"));
    EXPECT_TRUE(there("pymp-abc/bound"));
    EXPECT_FALSE(there("pymp-abc/dead"));
}

// An hour old, so from before this job: another job of the same user may still want it.
TEST_F(LeftSocketsTest, WhatIsOlderStays) {
    listen_at("pymp-abc/listener");
    const std::string path = folder_ + "/pymp-abc/listener";
    const timespec hour_ago[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), hour_ago, 0), 0);
    left_.remove();
    EXPECT_TRUE(there("pymp-abc/listener"));
}

// Only the names that the two libraries make are touched, and there only socket files. Everything
// else belongs to a program, which may come back for it. The one socket that goes shows that the
// removal has run at all.
TEST_F(LeftSocketsTest, WhatAProgramHasNamedOrIsNoSocketStays) {
    for (const char* name : {"server.sock", "mine/listener", "a-pymp-abc/listener"})
        listen_at(name);
    listen_at("pymp-abc/listener");
    std::ofstream(folder_ + "/pymp-abc/heap") << "bytes";
    std::filesystem::create_directory(folder_ + "/pymp-empty");
    std::ofstream(folder_ + "/pymp-file") << "bytes";
    left_.remove();
    for (const char* name : {"server.sock", "mine/listener", "a-pymp-abc/listener", "pymp-abc/heap",
                             "pymp-empty", "pymp-file"})
        EXPECT_TRUE(there(name)) << name;
    EXPECT_FALSE(there("pymp-abc/listener"));
}

}  // namespace
}  // namespace ddprun::agent
