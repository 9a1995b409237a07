// run_program() with real child processes. ddprun asks getent, munge and Slurm's commands this way,
// so a child that hangs, crashes or writes without end must not harm ddprun.
#include "base/loop/child_program.h"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <fstream>
#include <optional>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

using testing::HasSubstr;

// Runs one program on a loop of its own. The result is empty if no answer came within the 20 s of
// run_until().
std::optional<Result<ProgramResult>> run(const std::vector<std::string>& words,
                                         const std::string& input, Duration limit) {
    asio::io_context loop;
    std::optional<Result<ProgramResult>> result;
    asio::co_spawn(loop, run_program(words, input, limit),
                   [&](std::exception_ptr, Result<ProgramResult> got) { result = got; });
    run_until(loop, [&] { return result.has_value(); });
    return result;
}

// The script tests at once: input, an argument with blanks that no shell splits, standard error
// that is dropped, and an exit code that is not 0.
TEST(Program, GivesOutputAndExitCode) {
    const auto result = run({"sh", "-c", "read word; echo \"<$word> $1\"; echo no >&2; exit 3",
                             "sh", "argument with spaces"},
                            "input\n", std::chrono::seconds{10});
    ASSERT_TRUE(result && *result);
    EXPECT_EQ((*result)->output, "<input> argument with spaces\n");
    EXPECT_EQ((*result)->code, 3);
}

// -1 cannot be an exit code, so the caller sees that the program did not end by itself.
TEST(Program, ThatASignalEndsHasNoCode) {
    const auto result = run({"sh", "-c", "kill -9 $$"}, "", std::chrono::seconds{10});
    ASSERT_TRUE(result && *result);
    EXPECT_EQ((*result)->code, -1);
}

// A cluster may lack munge or scontrol. The error names the program, so the user knows what to
// install.
TEST(Program, ThatIsNotThereIsNamed) {
    const auto result = run({"no-such-program"}, "", std::chrono::seconds{10});
    ASSERT_TRUE(result && !*result);
    EXPECT_EQ(result->error().code(), ErrorCode::unavailable);
    EXPECT_THAT(result->error().sentence(), HasSubstr("cannot start no-such-program"));
}

// Two ways to hang: with open output, and with closed output. Closed output is not taken for the
// end of the program. Both programs are killed when their time is over: Slurm's commands hang when
// the controller is away, and must not pile up. 300 ms is enough for sh to write its process id.
TEST(Program, ThatHangsIsKilled) {
    Folder folder;
    for (const std::string script : {"", "exec >&-; "}) {
        const std::string file = folder / "pid";
        const auto result = run({"sh", "-c", "echo $$ >" + file + "; " + script + "exec sleep 300"},
                                "", std::chrono::milliseconds{300});
        ASSERT_TRUE(result && !*result);
        EXPECT_EQ(result->error().code(), ErrorCode::timed_out);
        int pid = 0;
        std::ifstream(file) >> pid;
        ASSERT_GT(pid, 0);
        // The answer comes after the kill, and the process is reaped: not even a zombie is left.
        EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(pid)));
    }
}

// The program writes without end. run_program() keeps 64 KiB and closes the pipe, so SIGPIPE ends
// the writer. The limit of 20 s is far away: the cut ends the program, not the time.
TEST(Program, ThatNeverEndsIsCutOff) {
    const auto result =
        run({"sh", "-c", "while :; do echo yes; done"}, "", std::chrono::seconds{20});
    ASSERT_TRUE(result && *result);
    EXPECT_LE((*result)->output.size(), 65536u + 4096u);  // one read more
}

}  // namespace
}  // namespace ddprun
