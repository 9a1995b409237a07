// How Slurm's commands are called, and what becomes of their answers. The commands are small shell
// scripts in a folder of the test. An answer may fail at any time, and no job may depend on one.
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

    // Makes one of Slurm's commands, a shell script that comes first in PATH.
    void command(const std::string& name, const std::string& text) {
        const auto path = folder_ / name;
        std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
        ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    }
    // The user's environment has SQUEUE_FORMAT, which changes what squeue prints.
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
    // Slurm's answer; none: it has given none, and the caller keeps what it knows.
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

// Slurm signals all processes of a step that it requeues, also the scontrol that has asked for it.
// If scontrol died of that, ddprun would report a failed requeue.
TEST_F(SlurmCallsTest, RequeueIsNotEndedByTheSignalItCauses) {
    command("scontrol", "kill -TERM $$; [ \"$*\" = 'requeue 8812' ]");
    const auto answer = requeue();
    EXPECT_TRUE(answer) << answer.error().sentence();
}

// The reason is in scontrol's own words, since only they say what to do.
TEST_F(SlurmCallsTest, TellsWhatScontrolSays) {
    command("scontrol", "echo 'Requested operation is presently disabled' >&2; exit 1");
    EXPECT_THAT(requeue().error().sentence(), HasSubstr("presently disabled"));
}

// The script checks its arguments too: one call for all nodes, with a folded list.
TEST_F(SlurmCallsTest, ReadsWhichNodesAreOutOfService) {
    command("sinfo", "[ \"$*\" = '-h -N -o %N %T -n n[1-3]' ] && printf 'n1 mixed\nn3 drained\n'");
    std::map<std::string, std::string> nodes;
    calls().out_of_service({"n1", "n2", "n3"}, [&nodes](auto said) { nodes = std::move(said); });
    loop_.run();
    EXPECT_THAT(nodes, testing::ElementsAre(testing::Pair("n3", "drained")));
}

// A command that fails may print half an answer. That must not take a node out of service.
TEST_F(SlurmCallsTest, WithoutAnAnswerNothingIsSaidOfNodes) {
    command("sinfo", "echo 'n1 down'; exit 1");
    bool called = false;
    calls().out_of_service({"n1"}, [&called](const auto&) { called = true; });
    loop_.run();
    EXPECT_FALSE(called);
}

// Prints the user's format if it is set, else the time.
TEST_F(SlurmCallsTest, ReadsTheTimeLeftWithoutTheUsersFormat) {
    command("squeue", "echo \"${SQUEUE_FORMAT-1:02:03}\"");
    EXPECT_EQ(time_left(), std::chrono::seconds{3723});
}

// "No limit" is an answer, and another one than no answer.
TEST_F(SlurmCallsTest, KnowsAJobWithoutALimit) {
    command("squeue", "echo UNLIMITED");
    EXPECT_EQ(time_left(), slurm::kNoLimit);
}

// Slurm's controller is away for a moment. That must not take away an end that is known already.
TEST_F(SlurmCallsTest, TellsNoTimeLeftWhereSlurmDoesNot) {
    for (const char* answer :
         {"echo 'slurm_load_jobs error' >&2; exit 1", "echo INVALID", "true"}) {
        command("squeue", answer);
        EXPECT_EQ(time_left(), std::nullopt) << answer;
    }
}

}  // namespace
}  // namespace ddprun::launcher
