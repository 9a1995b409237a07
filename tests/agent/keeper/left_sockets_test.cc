// Which socket files are removed, and above all which stay.
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

    // A listener at FOLDER/NAME: nobody's when the result is let go.
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
    LeftSockets left_{{folder_, folder_ + "/there-is-none"}};
};

TEST_F(LeftSocketsTest, WhoseListenerIsGoneGo) {
    listen_at("pymp-abc12_de/listener-0");
    listen_at("torch-shm-dir-Ab3xyz/manager.sock");
    left_.remove();
    EXPECT_FALSE(there("pymp-abc12_de/listener-0"));
    EXPECT_FALSE(there("torch-shm-dir-Ab3xyz"));
}

// A child of a process has died, and its socket was the only one: the process itself lives, and
// will have others in its folder.
TEST_F(LeftSocketsTest, TheFolderOfAProcessThatMayLiveStays) {
    listen_at("pymp-abc/listener-of-a-child");
    left_.remove();
    EXPECT_FALSE(there("pymp-abc/listener-of-a-child"));
    EXPECT_TRUE(there("pymp-abc"));
}

TEST_F(LeftSocketsTest, WhatSomebodyHasBoundStays) {
    const UniqueFd listens = listen_at("pymp-abc/listener"),
                   bound = listen_at("pymp-abc/bound", false);
    listen_at("pymp-abc/dead");
    left_.remove();
    EXPECT_TRUE(there("pymp-abc/listener"));
    EXPECT_TRUE(there("pymp-abc/bound"));
    EXPECT_FALSE(there("pymp-abc/dead"));
}

TEST_F(LeftSocketsTest, WhatIsOlderStays) {
    listen_at("pymp-abc/listener");
    const std::string path = folder_ + "/pymp-abc/listener";
    const timespec hour_ago[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), hour_ago, 0), 0);
    left_.remove();
    EXPECT_TRUE(there("pymp-abc/listener"));
}

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
