// run_program() with real child processes. ddprun asks getent, munge and Slurm's commands this way,
// so a child that hangs, crashes or writes without end must not harm ddprun.
#include "base/loop/child_program.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <fstream>
#include <optional>
#include <thread>

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

// Runs the loop until something is so that no handler tells of.
bool comes_true(asio::io_context& loop, const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
        settle(loop);
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return condition();
}

// Keeps a process from ending, as a system call does that does not return: a tracer that asks to
// see the end, and then does nothing about it. A debugger may be forbidden here.
class Held {
  public:
    explicit Held(pid_t pid) {
        int ends[2];
        EXPECT_EQ(::pipe(ends), 0);
        tracer_ = ::fork();
        if (tracer_ == 0) {
            const bool held = ::ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_TRACEEXIT) == 0;
            ::_exit(::write(ends[1], &held, 1) == 1 && held ? ::pause() : 1);
        }
        EXPECT_EQ(::read(ends[0], &held_, 1), 1);
        ::close(ends[0]);
        ::close(ends[1]);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
        ::kill(tracer_, SIGKILL);
        ::waitpid(tracer_, nullptr, 0);
    }
    explicit operator bool() const { return held_; }

  private:
    pid_t tracer_ = -1;
    bool held_ = false;
};

// A program whose end does not come: the loop goes on, one line names it, and no second one is
// started until it has ended.
TEST(Program, ThatHangsInTheKernelIsNotWaitedFor) {
    asio::io_context loop;
    std::vector<std::string> said;
    on_hung_program(loop, [&](const std::string& sentence) { said.push_back(sentence); });
    std::optional<Result<ProgramResult>> result;
    const auto begin = [&](const std::vector<std::string>& words, Duration limit) {
        result.reset();
        asio::co_spawn(loop, run_program(words, "", limit),
                       [&](std::exception_ptr, Result<ProgramResult> got) { result = got; });
    };
    const auto done = [&] { return result.has_value(); };
    begin({"sleep", "300"}, std::chrono::seconds{2});
    ASSERT_TRUE(comes_true(loop, [&] { return !running_programs(loop).empty(); }));
    const std::vector<pid_t> pids = running_programs(loop);
    std::optional<Held> held(pids[0]);
    if (!*held) GTEST_SKIP() << "no process may be traced here";

    ASSERT_TRUE(run_until(loop, done));
    EXPECT_EQ(result->error().code(), ErrorCode::timed_out);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_THAT(said[0],
                HasSubstr("sleep (process " + std::to_string(pids[0]) + ") hangs in the kernel"));
    EXPECT_EQ(running_programs(loop), pids);

    begin({"sleep", "0"}, std::chrono::seconds{20});
    ASSERT_TRUE(run_until(loop, done));
    ASSERT_FALSE(*result);
    EXPECT_THAT(result->error().sentence(), HasSubstr("sleep is not started: an earlier one"));
    begin({"true"}, std::chrono::seconds{20});
    ASSERT_TRUE(run_until(loop, done));
    EXPECT_TRUE(*result) << "another program";
    EXPECT_EQ(said.size(), 1U);

    held.reset();
    ASSERT_TRUE(comes_true(loop, [&] { return running_programs(loop).empty(); }));
    EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(pids[0]))) << "it is reaped";
    // Its thread may be about to say so.
    EXPECT_TRUE(comes_true(loop, [&] {
        begin({"sleep", "0"}, std::chrono::seconds{20});
        return run_until(loop, done) && result->has_value();
    }));
}

// Several run when the first of them is found to hang. They are named once, and all of them count.
TEST(Program, SeveralThatHangAreNamedOnce) {
    asio::io_context loop;
    std::vector<std::string> said;
    on_hung_program(loop, [&](const std::string& sentence) { said.push_back(sentence); });
    int over = 0;
    for (int i = 0; i < 2; ++i)
        asio::co_spawn(loop, run_program({"sleep", "300"}, "", std::chrono::seconds{2}),
                       [&](std::exception_ptr, const Result<ProgramResult>&) { ++over; });
    ASSERT_TRUE(comes_true(loop, [&] { return running_programs(loop).size() == 2; }));
    const std::vector<pid_t> pids = running_programs(loop);
    std::optional<Held> first(pids[0]), second(pids[1]);
    if (!*first || !*second) GTEST_SKIP() << "no process may be traced here";
    ASSERT_TRUE(run_until(loop, [&] { return over == 2; }));
    EXPECT_EQ(said.size(), 1U);
    EXPECT_EQ(running_programs(loop).size(), 2U);
    first.reset();
    second.reset();
    EXPECT_TRUE(comes_true(loop, [&] { return running_programs(loop).empty(); }));
}

// A caller that goes does not wait, either, nor does the end of the loop.
TEST(Program, WhoseCallerHasGoneIsKilled) {
    pid_t pid = 0;
    {
        asio::io_context loop;
        asio::co_spawn(loop, run_program({"sleep", "300"}, "", std::chrono::seconds{300}),
                       [](std::exception_ptr, const Result<ProgramResult>&) {});
        ASSERT_TRUE(comes_true(loop, [&] { return !running_programs(loop).empty(); }));
        pid = running_programs(loop)[0];
    }
    asio::io_context loop;
    EXPECT_TRUE(
        comes_true(loop, [&] { return !std::filesystem::exists("/proc/" + std::to_string(pid)); }));
}

}  // namespace
}  // namespace ddprun
