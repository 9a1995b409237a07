// Command lines of Python.
#include "agent/workers/python_command.h"

#include <gtest/gtest.h>

using namespace ddprun::agent;
using Words = std::vector<std::string>;

TEST(PythonCommand, EndsItsOptionsBeforeTheScript) {
    const auto script = python_command(
        {"/venv/bin/python3.11", "-u", "-X", "dev", "-Wignore", "-OO", "train.py", "-E", "--lr=1"});
    ASSERT_TRUE(script);
    EXPECT_EQ(script->interpreter,
              (Words{"/venv/bin/python3.11", "-u", "-X", "dev", "-Wignore", "-OO"}));
    EXPECT_EQ(script->script, "train.py");
}

// What runs is in no file that the options name.
TEST(PythonCommand, KnowsModulesAndTexts) {
    for (const Words& words :
         {Words{"python", "-u", "-m", "pkg.train", "-E"}, Words{"python", "-u", "-c", "print(1)"},
          Words{"python", "-umpkg"}, Words{"python", "-uc", "print(1)"}}) {
        const auto command = python_command(words);
        ASSERT_TRUE(command) << words[1];
        EXPECT_EQ(command->interpreter, (Words{"python", "-u"}));
        EXPECT_EQ(command->script, "");
    }
}

// Without site or PYTHONPATH the bootstrap is not read; a terminal's Python and others have another
// life.
TEST(PythonCommand, RefusesWhatAServerCannotStandInFor) {
    const auto reason = [](const Words& words) {
        const auto command = python_command(words);
        return command ? "" : command.error().sentence();
    };
    for (const char* option : {"-E", "-I", "-S", "-uE", "-IS"})
        EXPECT_NE(reason({"python3", option, "train.py"}), "") << option;
    EXPECT_EQ(reason({"python3", "-uE", "train.py"}), "Python is called with -E");
    for (const Words& words : {Words{"./train"}, Words{"pypy3", "train.py"}, Words{"python3"},
                               Words{"python3", "-"}, Words{"python3", "-i", "train.py"},
                               Words{"python3", "--version"}, Words{"python3x", "a.py"}, Words{}})
        EXPECT_NE(reason(words), "");
}
