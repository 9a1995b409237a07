// Which socket files of dead processes are removed, and above all which ones stay. The sockets are
// real and lie in a folder of the test. A file too many that stays does no harm; one that a living
// process needs must never go, and no living process may hear of it.
#include "keeper/killing/left_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

// A process with one descriptor of the test, which ends with this object.
class Worker {
  public:
    explicit Worker(const UniqueFd& open) : pid_(::fork()) {
        if (pid_ != 0) return;
        for (int fd = 3; fd < 64; ++fd)
            if (fd != open.get()) ::close(fd);
        for (;;) ::pause();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

  private:
    pid_t pid_;
};

class LeftSocketsTest : public testing::Test {
  protected:
    LeftSocketsTest() { std::filesystem::create_directories(folder_); }
    ~LeftSocketsTest() override { std::filesystem::remove_all(folder_); }

    // Makes a socket file at FOLDER/NAME. Without `listening`, the socket is only bound.
    UniqueFd listen_at(const std::string& name, bool listening = true) {
        const std::filesystem::path path = folder_ + '/' + name;
        std::filesystem::create_directories(path.parent_path());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::ranges::copy(path.native(), address.sun_path);
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        if (listening) {
            EXPECT_EQ(::listen(socket.get(), 1), 0);
        }
        return socket;
    }
    // A worker listens there, is seen, and dies. The file stays behind, as after SIGKILL.
    void leave_at(const std::string& name) {
        UniqueFd socket = listen_at(name);
        const Worker worker(socket);
        socket.reset();
        left_.see(::getpid());
    }
    bool there(const std::string& name) { return std::filesystem::exists(folder_ + '/' + name); }

    std::string folder_ =
        std::filesystem::path(testing::TempDir()) / ("sockets." + std::to_string(::getpid()));
    LeftSockets left_;
};

// Python's multiprocessing and PyTorch's manager were killed. Their folders go, too, since nobody
// is left who uses them.
TEST_F(LeftSocketsTest, SocketOfADeadWorkerIsRemoved) {
    leave_at("pymp-abc12_de/listener-0");
    leave_at("torch-shm-dir-Ab3xyz/manager.sock");
    left_.remove();
    EXPECT_FALSE(there("pymp-abc12_de"));
    EXPECT_FALSE(there("torch-shm-dir-Ab3xyz"));
}

// Of another program, dead or alive: no process of ours was seen there. The kernel's list of
// sockets does not show it if it lives in another network namespace, so the list proves nothing.
TEST_F(LeftSocketsTest, SocketOfAnotherProgramStays) {
    leave_at("pymp-ours/listener");
    listen_at("pymp-dead/listener").reset();
    left_.remove();
    EXPECT_FALSE(there("pymp-ours"));
    EXPECT_TRUE(there("pymp-dead/listener"));
}

// CPython's fork server ends of a connection that brings no descriptors.
TEST_F(LeftSocketsTest, NoListenerGetsAConnection) {
    const UniqueFd other = listen_at("pymp-other/listener");
    leave_at("pymp-ours/listener");
    left_.remove();
    EXPECT_EQ(::accept(other.get(), nullptr, nullptr), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_TRUE(there("pymp-other/listener"));
}

// The worker is dead, but a process that it has passed the socket to lives.
TEST_F(LeftSocketsTest, SocketThatAProcessStillHasStays) {
    UniqueFd socket = listen_at("pymp-abc/listener");
    {
        const Worker worker(socket);
        left_.see(::getpid());
    }
    left_.remove();
    EXPECT_TRUE(there("pymp-abc/listener"));
    socket.reset();
    left_.remove();
    EXPECT_FALSE(there("pymp-abc/listener"));
}

// A socket that is only bound, or connected to a listener of somebody else, is no proof.
TEST_F(LeftSocketsTest, OnlyWhoListensCounts) {
    UniqueFd bound = listen_at("pymp-abc/bound", false);
    {
        const Worker worker(bound);
        left_.see(::getpid());
    }
    bound.reset();
    left_.remove();
    EXPECT_TRUE(there("pymp-abc/bound"));
}

// An hour old, so from before this job.
TEST_F(LeftSocketsTest, OlderSocketStays) {
    leave_at("pymp-abc/listener");
    const std::string path = folder_ + "/pymp-abc/listener";
    const timespec hour_ago[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), hour_ago, 0), 0);
    left_.remove();
    EXPECT_TRUE(there("pymp-abc/listener"));
}

// Only the names that the two libraries make are touched, and there only socket files. Everything
// else belongs to a program, which may come back for it.
TEST_F(LeftSocketsTest, NameThatAProgramHasChosenStays) {
    for (const char* name : {"server.sock", "mine/listener", "a-pymp-abc/listener",
                             "pymp-abc/listener", "pymp-file/listener"})
        leave_at(name);
    std::ofstream(folder_ + "/pymp-abc/heap") << "bytes";
    std::filesystem::remove(folder_ + "/pymp-file/listener");
    std::ofstream(folder_ + "/pymp-file/listener") << "bytes";
    left_.remove();
    for (const char* name : {"server.sock", "mine/listener", "a-pymp-abc/listener", "pymp-abc/heap",
                             "pymp-file/listener"})
        EXPECT_TRUE(there(name)) << name;
    EXPECT_FALSE(there("pymp-abc/listener"));
}

}  // namespace
}  // namespace ddprun::agent
