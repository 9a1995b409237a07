// Whether srun was started with --no-kill, from its command line and SLURM_NO_KILL. Pure. Without
// the option Slurm ends the whole step when it loses a node, so the leader warns about it.
#include "slurm/no_kill.h"

#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

using Words = std::vector<std::string>;

// All forms that getopt_long() accepts: abbreviated, several short options in one word, and with an
// empty value. A form that is missed gives a wrong warning.
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

// Other options and values that contain a `k` or the words "no-kill". A wrong find hides the
// warning, and the user loses the job with the first lost node.
TEST(NoKill, IsNotSeenInOtherOptions) {
    for (const Words& words : {Words{},
                               {"-N4", "--kill-on-bad-exit"},
                               {"-K"},
                               {"-K1"},
                               {"-Jk"},  // a job with the name k
                               {"-w", "k1"},
                               {"-J", "no-kill"},
                               {"--no-allocate"},
                               {"--no"},  // too short: not unique
                               {"--no-kill=off"},
                               {"-wk[1-4]"},
                               {"-"},
                               {"--comment=--no-kill"},
                               {"-k", "--no-kill=off"}})
        EXPECT_FALSE(asks_no_kill(words, std::nullopt)) << testing::PrintToString(words);
    // The variable counts too, and the command line wins over it.
    EXPECT_FALSE(asks_no_kill({}, "off"));
    EXPECT_FALSE(asks_no_kill({"--no-kill=off"}, "1"));
}

// The words behind the program are options of ddprun or of the training script. A `-k` there is not
// srun's.
TEST(WordsOfSrun, EndWhereTheCommandBegins) {
    const Words command{"/opt/bin/ddprun", "-k", "train.py"};
    EXPECT_EQ(words_of_srun({"srun", "-N4", "ddprun", "-k", "train.py"}, command),
              (Words{"srun", "-N4"}));
    EXPECT_EQ(
        words_of_srun({"srun", "apptainer", "exec", "i.sif", "ddprun", "-k", "train.py"}, command),
        (Words{"srun", "apptainer", "exec", "i.sif"}));
}

// This srun did not start us directly: other arguments, another program, a shell, or no srun at
// all. Then nothing is known about --no-kill.
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
