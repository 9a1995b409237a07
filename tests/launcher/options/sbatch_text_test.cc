// Batch scripts filled in with a command line. Pure; that the scripts run shows
// tests/e2e/slurm_templates.sh.
#include "launcher/options/sbatch_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "launcher/options/option_table.h"
#include "slurm/batch_templates.h"

namespace ddprun::launcher {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string script(const std::vector<std::string>& words, const Environment& environment = {}) {
    const auto options = parse_options(words, {});
    EXPECT_TRUE(options) << options.error();
    return options ? sbatch_text(*options, environment) : "";
}

// Without other options a script is the file in slurm/, byte for byte, and each one is offered.
TEST(SbatchText, TheScriptsAreThoseOfTheFolder) {
    std::string names;
    for (const slurm::BatchTemplate& one : slurm::batch_templates()) {
        std::ostringstream file;
        file << std::ifstream(DDPRUN_TEST_DATA "/../../slurm/" + std::string(one.name) + ".sbatch")
                    .rdbuf();
        EXPECT_EQ(script({"--print-sbatch=" + std::string(one.name)}), file.str()) << one.name;
        EXPECT_THAT(option_row("print-sbatch").choices, HasSubstr(one.name));
    }
    EXPECT_EQ(slurm::batch_templates().size(), 5u);
}

// Numbers that Slurm needs go to sbatch, the other options to the command.
TEST(SbatchText, OptionsAndProgramAreFilledIn) {
    const std::string text =
        script({"--print-sbatch=preemptible", "--nnodes=8", "--nproc-per-node=2", "--no-label",
                "--log-dir", "my logs", "my.py", "--lr", "1e-3", "it's"});
    EXPECT_THAT(text, HasSubstr("\n#SBATCH --nodes=8\n"));
    EXPECT_THAT(text, HasSubstr("\n#SBATCH --gpus-per-node=2\n"));
    EXPECT_THAT(text,
                HasSubstr("\nsrun --no-kill ddprun --requeue-signal=USR1 --nproc-per-node=2 "
                          "--log-dir='my logs' --no-label my.py --lr 1e-3 'it'\\''s'\ncode=$?\n"));
    EXPECT_THAT(text, Not(HasSubstr("train.py")));
    EXPECT_THAT(script({"--print-sbatch", "--nnodes=2", "p"}), HasSubstr("#SBATCH --nodes=2 --nt"));
}

// Programs of MPI compute on processors.
TEST(SbatchText, AProgramOfMpiAsksForProcessors) {
    const std::string text =
        script({"--print-sbatch=preemptible", "--nproc-per-node=8", "--pmi", "./solver"});
    EXPECT_THAT(text, Not(HasSubstr("gpus")));
    EXPECT_THAT(text, HasSubstr("\n#SBATCH --cpus-per-task=8\n"));
    EXPECT_THAT(text, HasSubstr("--pmi ./solver"));
}

TEST(SbatchText, WorkersOfProcessorsAskForNoGpus) {
    EXPECT_THAT(script({"--print-sbatch", "--nproc-per-node=cpu", "p"}),
                HasSubstr("\n#SBATCH --nodes=1 --ntasks-per-node=1 --cpus-per-task=32 --time="));
    EXPECT_THAT(script({"--print-sbatch=elastic", "--nproc-per-node=cpu", "p"}),
                Not(HasSubstr("gpus")));
    EXPECT_THAT(script({"--print-sbatch=elastic", "--nproc-per-node=gpu", "p"}),
                HasSubstr("--gpus-per-node=4"));
}

TEST(SbatchText, TheJobHasTheNameOfItsProgramAndALogOfItsOwn) {
    EXPECT_THAT(script({"--print-sbatch", "python/fine_tune.py"}),
                HasSubstr("#!/bin/bash\n#SBATCH --job-name=fine_tune --output=%x-%j.out\n"
                          "# If your cluster asks for them, fill in and remove one #:\n"
                          "##SBATCH --account=ACCOUNT --partition=PARTITION\n#SBATCH --nodes=1 "));
    const std::string array = script({"--print-sbatch=array", ".hidden"});
    EXPECT_THAT(array, HasSubstr("\n#SBATCH --job-name=.hidden\n"));
    EXPECT_THAT(array, HasSubstr("\n#SBATCH --output=%x-%A_%a.out\n"));
}

// What works at the prompt works in the job.
TEST(SbatchText, WhatIsActiveIsActivated) {
    const Environment venv{{"VIRTUAL_ENV", "/home/a b/venv"}, {"CONDA_PREFIX", "/opt/conda"}};
    EXPECT_THAT(script({"--print-sbatch", "p"}, venv),
                HasSubstr("01:00:00\nsource '/home/a b/venv/bin/activate'\nsrun "));
    const Environment conda{{"CONDA_PREFIX", "/opt/conda/envs/torch"},
                            {"CONDA_EXE", "/opt/conda/bin/conda"},
                            {"LOADEDMODULES", "cuda/12.4:nccl/2.28"}};
    const std::string text = script({"--print-sbatch=elastic", "p"}, conda);
    EXPECT_THAT(text, HasSubstr("\nmodule load cuda/12.4 nccl/2.28\n"
                                "source /opt/conda/bin/activate /opt/conda/envs/torch\n"));
    EXPECT_THAT(text, Not(HasSubstr("if [[")));
    EXPECT_THAT(script({"--print-sbatch", "p"}, {{"LOADEDMODULES", "cuda:a;b"}}),
                HasSubstr("\nmodule load cuda 'a;b'\n"));
    EXPECT_THAT(script({"--print-sbatch=container", "p"}, conda), Not(HasSubstr("activate")));
    EXPECT_THAT(script({"--print-sbatch=elastic", "p"}), HasSubstr("\nif [[ -f venv/bin/act"));
}

// The user's value takes the place of the script's own, and a script with a spare keeps one.
TEST(SbatchText, TheScriptsOptionsGiveWay) {
    std::string text = script({"--print-sbatch=elastic", "--nnodes=6:8", "p"});
    EXPECT_THAT(text, HasSubstr("\n#SBATCH --nodes=9\n"));
    EXPECT_THAT(text, HasSubstr("\nsrun --no-kill ddprun --nnodes=6:8 p\n"));
    text = script({"--print-sbatch=preemptible", "--requeue-signal=USR2", "--nnodes=3:4", "p"});
    EXPECT_THAT(text, HasSubstr("ddprun --requeue-signal=USR2 --nnodes=3:4 p\n"));
    EXPECT_THAT(text, HasSubstr("\n#SBATCH --nodes=4\n"));
}

// People turn their torchrun line into a script: what Slurm knows must not stay in it.
TEST(SbatchText, WhatSlurmKnowsIsLeftOut) {
    const std::string text = script({"--print-sbatch=container", "--nnodes=2", "--node_rank=0",
                                     "--rdzv-endpoint=a:1", "--max-restarts=3", "p", "x"});
    EXPECT_THAT(text, HasSubstr("\n# Left out, because Slurm knows it: --node-rank=0 "
                                "--rdzv-endpoint=a:1\nsrun apptainer"));
    EXPECT_THAT(text, EndsWith("\"$ddprun\" --max-restarts=3 p x\n"));
}

// The elements of an array differ by the number that their arguments have.
TEST(SbatchText, AnArrayKeepsItsNumber) {
    EXPECT_THAT(script({"--print-sbatch=array", "my.py", "--lr=2"}),
                HasSubstr("\nsrun ddprun my.py --lr=2 --seed \"$SLURM_ARRAY_TASK_ID\" --output"));
}

}  // namespace
}  // namespace ddprun::launcher
