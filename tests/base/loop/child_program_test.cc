#include "base/loop/child_program.h"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <fstream>
#include <optional>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

using testing::HasSubstr;

std::optional<Result<ProgramResult>> run(const std::vector<std::string>& words,
                                         const std::string& input, Duration limit) {
    asio::io_context loop;
    std::optional<Result<ProgramResult>> result;
    asio::co_spawn(loop, run_program(words, input, limit),
                   [&](std::exception_ptr, Result<ProgramResult> got) { result = got; });
    run_until(loop, [&] { return result.has_value(); });
    return result;
}

TEST(Program, GivesOutputAndExitCode) {
    const auto result = run({"sh", "-c", "read word; echo \"<$word> $1\"; echo no >&2; exit 3",
                             "sh", "argument with spaces"},
                            "input\n", std::chrono::seconds{10});
    ASSERT_TRUE(result && *result);
    EXPECT_EQ((*result)->output, "<input> argument with spaces\n");
    EXPECT_EQ((*result)->code, 3);
}

TEST(Program, ThatASignalEndsHasNoCode) {
    const auto result = run({"sh", "-c", "kill -9 $$"}, "", std::chrono::seconds{10});
    ASSERT_TRUE(result && *result);
    EXPECT_EQ((*result)->code, -1);
}

TEST(Program, ThatIsNotThereIsNamed) {
    const auto result = run({"no-such-program"}, "", std::chrono::seconds{10});
    ASSERT_TRUE(result && !*result);
    EXPECT_EQ(result->error().code(), ErrorCode::unavailable);
    EXPECT_THAT(result->error().sentence(), HasSubstr("cannot start no-such-program"));
}

// One that hangs, and one that closes its output and hangs: both are killed when the time is over.
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
        EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(pid)));
    }
}

// More than we want to hear: what is read is bounded, and the writer does not stay.
TEST(Program, ThatNeverEndsIsCutOff) {
    const auto result =
        run({"sh", "-c", "while :; do echo yes; done"}, "", std::chrono::seconds{20});
    ASSERT_TRUE(result && *result);
    EXPECT_LE((*result)->output.size(), 65536u + 4096u);
}

}  // namespace
}  // namespace ddprun
