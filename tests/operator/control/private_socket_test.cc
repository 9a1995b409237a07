// The private socket of a job (operator/control/private_socket.h): who gets through, and what
// becomes of sockets that are left.
#include "operator/control/private_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

namespace fs = std::filesystem;

class PrivateSocketTest : public testing::Test {
  protected:
    PrivateSocketTest() { ::setenv("XDG_RUNTIME_DIR", (folder_ / "").c_str(), 1); }
    ~PrivateSocketTest() override { ::unsetenv("XDG_RUNTIME_DIR"); }

    std::unique_ptr<PrivateSocket> open(const std::string& run_id) {
        auto made = PrivateSocket::open(loop_, run_id, [this](UniqueFd) { ++callers_; });
        EXPECT_TRUE(made) << made.error();
        return made ? std::move(*made) : nullptr;
    }
    // Those of this test only.
    std::vector<PrivateJob> jobs() const {
        std::vector<PrivateJob> all = private_jobs();
        std::erase_if(
            all, [this](const PrivateJob& job) { return !job.path.starts_with(folder_ / ""); });
        return all;
    }
    void run() {
        loop_.restart();
        loop_.run_for(std::chrono::milliseconds{50});
    }

    const Folder folder_;
    boost::asio::io_context loop_;
    int callers_ = 0;
};

TEST_F(PrivateSocketTest, IsListedWhileTheJobRuns) {
    {
        const auto socket = open("lab.8812.0");
        const auto all = jobs();
        ASSERT_EQ(all.size(), 1U);
        EXPECT_EQ(all.front().name, "lab.8812.0");
        EXPECT_EQ(all.front().process, ::getpid());
        EXPECT_EQ(all.front().user, ::geteuid());
        EXPECT_EQ(all.front().folder, fs::current_path());
        struct stat status {};
        ASSERT_EQ(::stat((folder_ / "ddprun").c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777U, 0700U);
    }
    EXPECT_FALSE(fs::exists(folder_ / "ddprun"));
}

// ddpctl and other jobs look whether it listens. That must not start gRPC in the job.
TEST_F(PrivateSocketTest, TakesOnlyWhoSpeaks) {
    const auto socket = open("a");
    ASSERT_EQ(jobs().size(), 1U);
    run();
    EXPECT_EQ(callers_, 0);
    const auto caller = call_private(jobs().front().path);
    ASSERT_TRUE(caller) << caller.error();
    ASSERT_EQ(::send(caller->get(), "P", 1, 0), 1);
    run();
    EXPECT_EQ(callers_, 1);
}

// Each costs the job a descriptor.
TEST_F(PrivateSocketTest, KeepsFewOfThoseThatSendNothing) {
    const auto socket = open("a");
    std::vector<UniqueFd> callers;
    for (int i = 0; i < 40; ++i) {
        auto caller = call_private(jobs().front().path);
        ASSERT_TRUE(caller) << caller.error();
        callers.push_back(std::move(*caller));
        run();
    }
    int open_ones = 0;
    char byte = 0;
    for (const UniqueFd& each : callers)
        open_ones += ::recv(each.get(), &byte, 1, MSG_DONTWAIT) == -1 ? 1 : 0;
    EXPECT_LE(open_ones, 16);
    ASSERT_EQ(::send(callers.back().get(), "P", 1, 0), 1);
    run();
    EXPECT_EQ(callers_, 1);
}

// They wait, as no descriptor is left for them, and are taken later.
TEST_F(PrivateSocketTest, TakesCallersAgainAfterTheLastDescriptor) {
    const auto socket = open("a");
    const auto caller = call_private(jobs().front().path);
    ASSERT_TRUE(caller) << caller.error();
    ASSERT_EQ(::send(caller->get(), "P", 1, 0), 1);
    std::vector<UniqueFd> all;
    while (all.empty() || all.back()) all.emplace_back(::dup(0));
    run();
    EXPECT_EQ(callers_, 0);
    all.clear();
    loop_.restart();
    loop_.run_for(std::chrono::milliseconds{300});
    EXPECT_EQ(callers_, 1);
}

TEST_F(PrivateSocketTest, RemovesWhatAKilledJobHasLeft) {
    const auto socket = open("a");
    const std::string left = folder_ / "ddprun/b~1";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, left.c_str(), sizeof address.sun_path - 1);
    const UniqueFd closed(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(closed.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::ofstream(folder_ / "ddprun/notes.txt") << "mine";
    EXPECT_EQ(jobs().size(), 1U);
    EXPECT_FALSE(fs::exists(left));
    EXPECT_TRUE(fs::exists(folder_ / "ddprun/notes.txt"));
}

TEST_F(PrivateSocketTest, AFolderThatOthersMayEnterIsNotUsed) {
    fs::create_directory(folder_ / "ddprun");
    fs::permissions(folder_ / "ddprun", fs::perms::all);
    const auto made = PrivateSocket::open(loop_, "a", [](UniqueFd) {});
    EXPECT_TRUE(jobs().empty());
    EXPECT_TRUE(fs::is_empty(folder_ / "ddprun"));
}

TEST(SocketName, IsHarmlessAndShort) {
    EXPECT_EQ(socket_name("lab.8812.0"), "lab.8812.0");
    EXPECT_EQ(socket_name("../a b~1"), "_.._a_b_1");
    EXPECT_EQ(socket_name(""), "_");
    EXPECT_EQ(socket_name(std::string(200, 'x')).size(), 48U);
}

}  // namespace
}  // namespace ddprun::rendezvous
