// The recorders of a node's workers: what the workers get in their environment, and what NCCL's
// leaves in a file when it is asked by its pipe. A thread plays NCCL: it does what is described in
// nccl_pipes.h. Gloo's are tested with real workers (tests/hangs).
#include "diagnosis/recorder/flight_recorders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class FlightRecordersTest : public testing::Test {
  protected:
    FlightRecordersTest() {
        std::filesystem::create_directories(temporary_);
        std::filesystem::create_directories(kept_);
    }
    ~FlightRecordersTest() override { std::filesystem::remove_all(base_); }

    FlightRecorders recorders(RecorderOptions options,
                              const FlightRecorders::Variables& user = {}) {
        return FlightRecorders(loop_, options, user,
                               [this](const std::string& line) { said_.push_back(line); });
    }
    // What the workers of a generation get, besides `environment`, which those before have got.
    FlightRecorders::Variables begin(FlightRecorders& recorders, const std::string& temporary,
                                     const std::string& kept,
                                     FlightRecorders::Variables environment = {}) {
        if (const auto furnish = recorders.furnish(!kept.empty()); furnish && !temporary.empty())
            furnish(temporary);
        recorders.begin(temporary, kept, environment);
        return environment;
    }
    FlightRecorders::Variables begin(FlightRecorders&& recorders, const std::string& temporary,
                                     const std::string& kept) {
        return begin(recorders, temporary, kept);
    }
    // Asks for ranks 4 and 5, and runs until the answer has come.
    std::vector<rendezvous::RecordedCalls> ask(FlightRecorders& recorders) {
        std::vector<rendezvous::RecordedCalls> found;
        bool answered = false;
        recorders.ask(Generation{0}, {4, 5}, [&](std::vector<rendezvous::RecordedCalls> recorded) {
            found = std::move(recorded);
            answered = true;
        });
        loop_.restart();
        loop_.run();
        EXPECT_TRUE(answered);
        return found;
    }

    const std::string base_ = testing::TempDir() + "recorders_" + std::to_string(::getpid());
    const std::string temporary_ = base_ + "/temporary", kept_ = base_ + "/kept";
    boost::asio::io_context loop_;
    std::vector<std::string> said_;
};

TEST_F(FlightRecordersTest, NothingIsSetWhereNothingIsWanted) {
    EXPECT_THAT(begin(recorders({}), temporary_, kept_), IsEmpty());
    EXPECT_THAT(begin(recorders({false, true}), temporary_, ""), IsEmpty()) << "no --log-dir";
    EXPECT_THAT(begin(recorders({true, true}), "", kept_), IsEmpty()) << "no folder";
    EXPECT_FALSE(std::filesystem::exists(temporary_ + "/recorders"));
}

TEST_F(FlightRecordersTest, WorkersGetTheirPlaces) {
    const std::string folder = temporary_ + "/recorders";
    EXPECT_THAT(begin(recorders({true, true}), temporary_, kept_),
                ElementsAre(Pair("DDPRUN_FLIGHT_RECORDER", folder),
                            Pair("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", folder + "/nccl_"),
                            Pair("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", kept_ + "/nccl_trace_rank_")));
    struct stat status {};
    ASSERT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(FlightRecordersTest, WhatTheUserHasSetStays) {
    for (const char* dump : {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE"})
        EXPECT_THAT(begin(recorders({false, true}, {{dump, "/x_"}}), temporary_, kept_),
                    ElementsAre(Pair("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", testing::_)));
    EXPECT_THAT(begin(recorders({false, true}, {{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/x_"}}),
                      temporary_, kept_),
                ElementsAre(Pair("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", testing::_)));
}

// A later generation has no folder where files are kept. Its dumps must not go over those of the
// one before.
TEST_F(FlightRecordersTest, AGenerationGetsNothingOfTheOneBefore) {
    FlightRecorders all = recorders({true, true});
    const auto first = begin(all, temporary_, kept_, {{"OTHER", "1"}});
    EXPECT_THAT(first, testing::SizeIs(4));
    EXPECT_THAT(begin(all, temporary_, "", first),
                ElementsAre(Pair("DDPRUN_FLIGHT_RECORDER", testing::_), Pair("OTHER", "1")));
    EXPECT_THAT(begin(all, "", kept_, first), ElementsAre(Pair("OTHER", "1")));
    // What the user has set is not ours.
    const FlightRecorders::Variables user{{"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/x_"}};
    FlightRecorders users = recorders({false, true}, user);
    EXPECT_EQ(begin(users, temporary_, "", user), user);
}

// Rank 4 has NCCL, rank 5 has not. The answer comes when the dump is there.
TEST_F(FlightRecordersTest, NcclWritesItsDumpBeforeTheAnswer) {
    FlightRecorders asked = recorders({false, true});
    const auto variables = begin(asked, temporary_, kept_);
    const std::string pipe = variables.at("TORCH_NCCL_DEBUG_INFO_PIPE_FILE") + "4.pipe";
    const std::string dump = variables.at("TORCH_NCCL_DEBUG_INFO_TEMP_FILE") + "4";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
    const UniqueFd end(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
    std::thread nccl([&] {
        char byte = 0;
        while (::read(end.get(), &byte, 1) <= 0)
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        std::ofstream(dump) << "a pickle";
    });
    EXPECT_THAT(ask(asked), IsEmpty()) << "a pickle is not read";
    EXPECT_TRUE(std::filesystem::exists(dump));
    nccl.join();
}

// The folder of the dumps may hang, and the servers have nothing to do with it.
TEST_F(FlightRecordersTest, ServersAreAskedBeforeNccl) {
    FlightRecorders asked = recorders({true, true});
    const auto variables = begin(asked, temporary_, kept_);
    const std::string pipe = variables.at("TORCH_NCCL_DEBUG_INFO_PIPE_FILE") + "4.pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
    const UniqueFd end(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
    sockaddr_un address{AF_UNIX, {}};
    (variables.at("DDPRUN_FLIGHT_RECORDER") + "/0_4").copy(address.sun_path, 100);
    UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listening.get(), 5), 0);
    std::string before;  // what NCCL was told when a server was asked
    std::thread server([&] {
        const UniqueFd socket(::accept(listening.get(), nullptr, nullptr));
        listening.reset();  // one answer is enough
        char bytes[1000];
        (void)!::recv(socket.get(), bytes, sizeof bytes, 0);
        if (::read(end.get(), bytes, 1) > 0) before = bytes[0];
        (void)!::send(socket.get(), "HTTP/1.1 200 OK\r\n\r\n{}", 21, MSG_NOSIGNAL);
        ::shutdown(socket.get(), SHUT_WR);
        while (::read(end.get(), bytes, 1) <= 0) ::usleep(1000);
        std::ofstream(kept_ + "/nccl_trace_rank_4") << "a pickle";
    });
    EXPECT_THAT(ask(asked), IsEmpty());
    server.join();
    EXPECT_EQ(before, "");
    EXPECT_TRUE(std::filesystem::exists(kept_ + "/nccl_trace_rank_4")) << "NCCL is asked, too";
    EXPECT_THAT(said_, IsEmpty()) << "a server has answered";
}

// Nobody reads the pipe, or it is none.
TEST_F(FlightRecordersTest, WhoDoesNotReadHarmsNobody) {
    FlightRecorders asked = recorders({true, true});
    const std::string prefix =
        begin(asked, temporary_, kept_).at("TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
    ASSERT_EQ(::mkfifo((prefix + "4.pipe").c_str(), 0666), 0);
    std::ofstream(prefix + "5.pipe") << "";
    EXPECT_THAT(ask(asked), IsEmpty());
    EXPECT_EQ(std::filesystem::file_size(prefix + "5.pipe"), 0U);
    EXPECT_TRUE(std::filesystem::is_empty(kept_));
    ask(asked);
    EXPECT_THAT(said_, ElementsAre(testing::StartsWith("--flight-recorder: no worker answers")));
}

}  // namespace
}  // namespace ddprun::agent
