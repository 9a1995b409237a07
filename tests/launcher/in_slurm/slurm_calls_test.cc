// Slurm's commands as small scripts: what they are called with, and what becomes of their answers.
#include "launcher/in_slurm/slurm_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "slurm/time_left.h"

namespace ddprun::launcher {
namespace {

using testing::HasSubstr;

class SlurmCallsTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "slurm_calls_XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    void command(const std::string& name, const std::string& text) {
        const auto path = folder_ / name;
        std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
        ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    }
    SlurmCalls calls() {
        return {loop_,
                "8812",
                {{"PATH", folder_.string() + ":/usr/bin:/bin"}, {"SQUEUE_FORMAT", "%i"}}};
    }
    Result<> requeue() {
        std::optional<Result<>> answer;
        calls().requeue([&answer](Result<> result) { answer = std::move(result); });
        loop_.run();
        return answer ? *answer : Error(ErrorCode::internal, "no answer");
    }
    std::optional<std::chrono::seconds> time_left() {
        std::optional<std::chrono::seconds> left;
        calls().time_left([&left](std::chrono::seconds answer) { left = answer; });
        loop_.restart();
        loop_.run();
        return left;
    }

    boost::asio::io_context loop_;
    std::filesystem::path folder_;
};

// Where Slurm takes all descendants of a step's task for its processes, a requeue sends SIGTERM to
// the scontrol that asks for it.
TEST_F(SlurmCallsTest, RequeueIsNotEndedByTheSignalItCauses) {
    command("scontrol", "kill -TERM $$; [ \"$*\" = 'requeue 8812' ]");
    const auto answer = requeue();
    EXPECT_TRUE(answer) << answer.error().sentence();
}

TEST_F(SlurmCallsTest, TellsWhatScontrolSays) {
    command("scontrol", "echo 'Requested operation is presently disabled' >&2; exit 1");
    EXPECT_THAT(requeue().error().sentence(), HasSubstr("presently disabled"));
}

TEST_F(SlurmCallsTest, ReadsWhichNodesAreOutOfService) {
    command("sinfo", "[ \"$*\" = '-h -N -o %N %T -n n[1-3]' ] && printf 'n1 mixed\nn3 drained\n'");
    std::map<std::string, std::string> nodes;
    calls().out_of_service({"n1", "n2", "n3"}, [&nodes](auto said) { nodes = std::move(said); });
    loop_.run();
    EXPECT_THAT(nodes, testing::ElementsAre(testing::Pair("n3", "drained")));
}

TEST_F(SlurmCallsTest, WithoutAnAnswerNothingIsSaidOfNodes) {
    command("sinfo", "echo 'n1 down'; exit 1");
    bool called = false;
    calls().out_of_service({"n1"}, [&called](const auto&) { called = true; });
    loop_.run();
    EXPECT_FALSE(called);
}

TEST_F(SlurmCallsTest, ReadsTheTimeLeftWithoutTheUsersFormat) {
    command("squeue", "echo \"${SQUEUE_FORMAT-1:02:03}\"");
    EXPECT_EQ(time_left(), std::chrono::seconds{3723});
}

TEST_F(SlurmCallsTest, KnowsAJobWithoutALimit) {
    command("squeue", "echo UNLIMITED");
    EXPECT_EQ(time_left(), slurm::kNoLimit);
}

// A controller that is away for a moment must not take away an end that is known.
TEST_F(SlurmCallsTest, TellsNoTimeLeftWhereSlurmDoesNot) {
    for (const char* answer :
         {"echo 'slurm_load_jobs error' >&2; exit 1", "echo INVALID", "true"}) {
        command("squeue", answer);
        EXPECT_EQ(time_left(), std::nullopt) << answer;
    }
}

}  // namespace
}  // namespace ddprun::launcher
