// The exception of a Python program, found in what it printed last. Pure.
#include "base/python_exception.h"

#include <gtest/gtest.h>

namespace ddprun {
namespace {

const std::string kFile = "  File \"/data/train.py\", line 7, in <module>";

TEST(PythonException, IsTheLineAfterTheTraceback) {
    EXPECT_EQ(python_exception({"epoch 3", "Traceback (most recent call last):", kFile,
                                "    raise ValueError('no data')", "ValueError: no data"}),
              "ValueError: no data");
    EXPECT_EQ(python_exception({kFile, "KeyboardInterrupt"}), "KeyboardInterrupt");
    EXPECT_EQ(python_exception({kFile, "torch.cuda.OutOfMemoryError: CUDA out of memory."}),
              "torch.cuda.OutOfMemoryError: CUDA out of memory.");
}

// The last lines begin in the middle of a long traceback, and the program's exit handlers print
// more after it.
TEST(PythonException, IsFoundInAnExcerpt) {
    EXPECT_EQ(python_exception({"    f()", kFile, "    g()", "    ^^^", "KeyError: 'x'", "bye"}),
              "KeyError: 'x'");
}

TEST(PythonException, IsFoundBehindPyTorchsRank) {
    EXPECT_EQ(
        python_exception({"[rank13]: Traceback (most recent call last):", "[rank13]: " + kFile,
                          "[rank13]:     h()", "[rank13]: RuntimeError: boom"}),
        "RuntimeError: boom");
    EXPECT_EQ(python_exception({"[rank]: " + kFile, "[rank]: KeyError: 'x'"}), "");
}

// An exception that is raised while another is handled is the one that ended the program.
TEST(PythonException, IsTheNewestOfAChain) {
    EXPECT_EQ(python_exception({kFile, "KeyError: 'x'", "",
                                "During handling of the above exception, another exception "
                                "occurred:",
                                "", "Traceback (most recent call last):", kFile, "    h()",
                                "RuntimeError: second"}),
              "RuntimeError: second");
}

// pdb's prompt is on standard output, the traceback on the other stream: what was typed may come
// between its lines.
TEST(PythonException, ADebuggerHasEndedIt) {
    EXPECT_TRUE(ended_in_debugger("bdb.BdbQuit", {}));
    EXPECT_TRUE(ended_in_debugger("", {kFile, "    if self.quitting: raise BdbQuit", "(Pdb) q",
                                       "                      ^^^^", "[rank1]: bdb.BdbQuit", ""}));
    EXPECT_FALSE(ended_in_debugger("ValueError: bdb.BdbQuit", {"bdb.BdbQuit"}));
    EXPECT_FALSE(ended_in_debugger("", {"bdb.BdbQuit", "1", "2", "3"}));
    EXPECT_FALSE(ended_in_debugger("", {}));
}

// A program that is not Python, a warning with its place, and words that only look like a name.
TEST(PythonException, IsNotGuessed) {
    EXPECT_EQ(python_exception({}), "");
    EXPECT_EQ(python_exception({"Error: disk full"}), "");
    EXPECT_EQ(python_exception({"Traceback (most recent call last):", kFile, "    f()"}), "");
    EXPECT_EQ(python_exception({kFile, "Aborted (core dumped)"}), "");
    EXPECT_EQ(python_exception({kFile, "7.5: too much"}), "");
    EXPECT_EQ(python_exception({kFile, ""}), "");
}

}  // namespace
}  // namespace ddprun
