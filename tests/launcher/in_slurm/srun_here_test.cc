// Finds the srun that has started this ddprun, in a made-up /proc. Only its command line says
// whether the step survives the loss of a node (--no-kill).
#include "launcher/in_slurm/srun_here.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace ddprun::launcher {
namespace {

using namespace std::string_literals;

// This process is ddprun with some options. Process 7 has "srun" among its words and is none.
class SrunHere : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "srun_here_XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        process("self", "ddprun\n", "/opt/ddprun\0--nnodes=3:4\0train.py\0"s, "");
        process("7", "python3\n", "srun\0--no-kill\0ddprun\0"s, kOurs);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // The three files of a process that are read: its name, its words, its environment.
    void process(const std::string& id, const std::string& comm, const std::string& words,
                 const std::string& environment) {
        std::filesystem::create_directories(folder_ / id);
        std::ofstream(folder_ / id / "comm") << comm;
        std::ofstream(folder_ / id / "cmdline") << words;
        std::ofstream(folder_ / id / "environ") << environment;
    }
    // An srun with these options, which starts our command.
    void srun(const std::string& id, const std::string& options, const std::string& environment) {
        process(id, "srun\n", "srun\0"s + options + "ddprun\0--nnodes=3:4\0train.py\0"s,
                environment);
    }
    std::optional<bool> survives() { return srun_survives_loss("8812", folder_.string()); }

    const std::string kOurs = "HOME=/root\0SLURM_JOB_ID=8812\0"s;
    std::filesystem::path folder_;
};

TEST_F(SrunHere, TellsItsOption) {
    EXPECT_EQ(survives(), std::nullopt);
    srun("90", "-N4\0"s, kOurs);
    srun("91", "-N4\0"s, kOurs);  // srun runs as two processes
    EXPECT_EQ(survives(), false);
    srun("90", "-N4\0-k\0"s, kOurs);
    srun("91", "-N4\0-k\0"s, kOurs);
    EXPECT_EQ(survives(), true);
}

// The variable stands in for the option, also when it is empty.
TEST_F(SrunHere, TellsItsVariable) {
    srun("90", "", kOurs + "SLURM_NO_KILL=\0"s);
    EXPECT_EQ(survives(), true);
}

// Another job's srun on a shared node, and an srun of this job that starts something else. Their
// options say nothing about this step.
TEST_F(SrunHere, IsNoOther) {
    srun("90", "--no-kill\0"s, "SLURM_JOB_ID=8813\0"s);
    process("91", "srun\n", "srun\0--no-kill\0hostname\0"s, kOurs);
    EXPECT_EQ(survives(), std::nullopt);
}

// Two steps of this job start the same command with different options. A guess could be wrong, so
// there is no answer.
TEST_F(SrunHere, OfTwoThatDifferNeitherIsTaken) {
    srun("90", "", kOurs);
    srun("91", "--no-kill\0"s, kOurs);
    EXPECT_EQ(survives(), std::nullopt);
}

}  // namespace
}  // namespace ddprun::launcher
