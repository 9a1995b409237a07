// srun's words: whether a lost node is to end its step.
#include "slurm/no_kill.h"

#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

using Words = std::vector<std::string>;

TEST(NoKill, IsFoundInAllItsForms) {
    for (const Words& words : {Words{"--no-kill"},
                               {"-N4", "-k"},
                               {"--no-kill="},
                               {"--no-ki", "-n", "4"},
                               {"-lk"},
                               {"-N", "4", "-uk", "--mpi=none"},
                               {"--no-kill=off", "-k"}})
        EXPECT_TRUE(asks_no_kill(words, std::nullopt)) << testing::PrintToString(words);
    EXPECT_TRUE(asks_no_kill({}, ""));
    EXPECT_TRUE(asks_no_kill({"-N4"}, "1"));
}

TEST(NoKill, IsNotSeenInOtherOptions) {
    for (const Words& words : {Words{},
                               {"-N4", "--kill-on-bad-exit"},
                               {"-K"},
                               {"-K1"},
                               {"-Jk"},
                               {"-w", "k1"},
                               {"-J", "no-kill"},
                               {"--no-allocate"},
                               {"--no"},
                               {"--no-kill=off"},
                               {"-wk[1-4]"},
                               {"-"},
                               {"--comment=--no-kill"},
                               {"-k", "--no-kill=off"}})
        EXPECT_FALSE(asks_no_kill(words, std::nullopt)) << testing::PrintToString(words);
    EXPECT_FALSE(asks_no_kill({}, "off"));
    EXPECT_FALSE(asks_no_kill({"--no-kill=off"}, "1"));
}

TEST(WordsOfSrun, EndWhereTheCommandBegins) {
    const Words command{"/opt/bin/ddprun", "-k", "train.py"};
    EXPECT_EQ(words_of_srun({"srun", "-N4", "ddprun", "-k", "train.py"}, command),
              (Words{"srun", "-N4"}));
    EXPECT_EQ(
        words_of_srun({"srun", "apptainer", "exec", "i.sif", "ddprun", "-k", "train.py"}, command),
        (Words{"srun", "apptainer", "exec", "i.sif"}));
}

TEST(WordsOfSrun, AreNoneWhereItStartsSomethingElse) {
    const Words command{"ddprun", "-k", "train.py"};
    EXPECT_EQ(words_of_srun({"srun", "-N4", "ddprun", "-k", "other.py"}, command), Words{});
    EXPECT_EQ(words_of_srun({"srun", "python", "-k", "train.py"}, command), Words{});
    EXPECT_EQ(words_of_srun({"srun", "bash", "-c", "ddprun -k train.py"}, command), Words{});
    EXPECT_EQ(words_of_srun({"ddprun", "-k", "train.py"}, command), Words{});
    EXPECT_EQ(words_of_srun({"srun"}, {}), Words{});
}

}  // namespace
}  // namespace ddprun::slurm
