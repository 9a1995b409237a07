// The recorders of a node's workers: what the workers get in their environment, and what NCCL's
// leaves in a file when it is asked by its pipe. A thread plays NCCL: it does what is described in
// nccl_pipes.h. Gloo's are tested with real workers (tests/hangs).
#include "agent/recorder/flight_recorders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
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
    EXPECT_THAT(recorders({}).begin(temporary_, kept_), IsEmpty());
    EXPECT_THAT(recorders({false, true}).begin(temporary_, ""), IsEmpty()) << "no --log-dir";
    EXPECT_THAT(recorders({true, true}).begin("", kept_), IsEmpty()) << "no folder";
    EXPECT_FALSE(std::filesystem::exists(temporary_ + "/recorders"));
}

TEST_F(FlightRecordersTest, WorkersGetTheirPlaces) {
    const std::string folder = temporary_ + "/recorders";
    EXPECT_THAT(recorders({true, true}).begin(temporary_, kept_),
                ElementsAre(Pair("DDPRUN_FLIGHT_RECORDER", folder),
                            Pair("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", folder + "/nccl_"),
                            Pair("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", kept_ + "/nccl_trace_rank_")));
    struct stat status {};
    ASSERT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(FlightRecordersTest, WhatTheUserHasSetStays) {
    for (const char* dump : {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE"})
        EXPECT_THAT(recorders({false, true}, {{dump, "/x_"}}).begin(temporary_, kept_),
                    ElementsAre(Pair("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", testing::_)));
    EXPECT_THAT(recorders({false, true}, {{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/x_"}})
                    .begin(temporary_, kept_),
                ElementsAre(Pair("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", testing::_)));
}

// Rank 4 has NCCL, rank 5 has not. The answer comes when the dump is there.
TEST_F(FlightRecordersTest, NcclWritesItsDumpBeforeTheAnswer) {
    FlightRecorders asked = recorders({false, true});
    const auto variables = asked.begin(temporary_, kept_);
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

// Nobody reads the pipe, or it is none.
TEST_F(FlightRecordersTest, WhoDoesNotReadHarmsNobody) {
    FlightRecorders asked = recorders({true, true});
    const std::string prefix = asked.begin(temporary_, kept_).at("TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
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
