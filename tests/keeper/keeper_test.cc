// Workers that a real keeper starts: what they find, what is reported of those that cannot start,
// and how their end is reported.
#include "keeper/keeper.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "agent/host/hardware.h"
#include "tests/keeper/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;

// An exit code and a signal are reported under the pid that the spawn was answered with.
TEST(Keeper, TellsHowAWorkerEnded) {
    Bench bench;
    bench.spawn(shell("exit 3"));
    ASSERT_TRUE(bench.answered(1));
    bench.spawn(shell("kill -9 $$"));
    ASSERT_TRUE(bench.exited(2));
    ASSERT_EQ(bench.pids.size(), 2U);
    EXPECT_EQ(bench.exits[bench.pids[0]], W_EXITCODE(3, 0));
    EXPECT_EQ(bench.exits[bench.pids[1]], W_EXITCODE(0, SIGKILL));
}

// Five starts that fail: a wrong path, a program that PATH does not have, a file without the right
// to execute, a folder, and a working folder that is missing. The child finds out after the fork,
// and the user must get a sentence and not just a worker that "exited with 127".
TEST(Keeper, ReportsWhatCannotBeExecuted) {
    Bench bench;
    for (const char* program : {"/no/such/program", "no-such-program", "/etc/passwd", "/"}) {
        WorkerStart start = shell("");
        start.argv = {program};
        bench.spawn(start);
    }
    WorkerStart lost = shell("true");
    lost.cwd = "/no/such/folder";
    bench.spawn(lost);
    ASSERT_TRUE(bench.answered(5));
    ASSERT_EQ(bench.errors.size(), 5U);
    std::map<ErrorCode, int> codes;
    for (const Error& error : bench.errors) ++codes[error.code()];
    // The first two are "not found" (127 in a shell), the others cannot be executed (126).
    EXPECT_EQ(codes[ErrorCode::not_found], 2);
    EXPECT_EQ(codes[ErrorCode::refused], 3);
    EXPECT_TRUE(std::any_of(bench.errors.begin(), bench.errors.end(), [](const Error& error) {
        return error.sentence() == "cannot execute /etc/passwd: Permission denied";
    }));
    // A start that failed does no harm to the next one, and counts as no worker that has ended.
    bench.spawn(shell("exit 0"));
    EXPECT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.exits.size(), 1U);
}

// More workers than the keeper forks in a row (16), and a third of them cannot run. Each request
// gets its own answer, and each worker has its own descriptors: none may hold the pipe of another
// one.
TEST(Keeper, AnswersEachOfMany) {
    Bench bench;
    std::vector<Pipe> outputs(100);
    std::map<std::size_t, std::int64_t> pids;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        WorkerStart start = shell("echo " + std::to_string(i) + "; exit 7");
        if (i % 3 == 0) start.argv = {"/no/such/program"};
        start.stdout_fd = outputs[i].in.get();
        bench.keeper.spawn(start, [&bench, &pids, i](Result<Spawned> result) {
            if (result)
                pids[i] = result->pid;
            else
                bench.errors.push_back(result.error());
        });
        outputs[i].in.reset();
    }
    ASSERT_TRUE(
        bench.run_until([&] { return bench.exits.size() == 66 && bench.errors.size() == 34; }));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_EQ(outputs[i].read_all(), i % 3 == 0 ? "" : std::to_string(i) + "\n");
        EXPECT_EQ(pids.contains(i), i % 3 != 0);
        if (pids.contains(i)) {
            EXPECT_EQ(bench.exits[pids[i]], W_EXITCODE(7, 0));
        }
    }
}

// What a worker inherits: its own session, no blocked or ignored signals, only its own descriptors,
// its folder, CPU, limit and environment. Anything left over from ddprun can break programs: a
// blocked SIGTERM makes them deaf, a pipe that stays open lets others wait forever.
TEST(Keeper, GivesAWorkerACleanPlace) {
    Bench bench;
    Pipe output, extra;
    // The script lists its descriptors (3 is the folder that `ls` reads), its signal masks, its
    // folder and its limit of open files. Then come process group and session, which must both be
    // its own pid (printed twice behind them), its CPUs and its variable. `cat` ends at once if
    // stdin is /dev/null.
    WorkerStart start = shell(
        "ls /proc/self/fd | tr '\\n' ' '; grep -E 'SigBlk|SigIgn' /proc/self/status; pwd; ulimit "
        "-Sn; "
        "cut -d' ' -f5,6 /proc/$$/stat; echo $$ $$; grep Cpus_allowed_list /proc/self/status; echo "
        "$MARK; cat; echo x >&7");
    start.stdout_fd = start.stderr_fd = output.in.get();
    start.extra = {{7, extra.in.get()}};
    start.cwd = "/usr";
    start.nofile_soft = 99;
    start.cpus = {allowed_cpus().back()};
    start.environment.push_back("MARK=here");
    bench.spawn(start);
    extra.in.reset();
    const std::string all = output.read_all();
    ASSERT_TRUE(bench.exited(1));
    ASSERT_EQ(bench.pids.size(), 1U);
    const std::string pid = std::to_string(bench.pids[0]);
    EXPECT_EQ(all, "0 1 2 3 7 SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n/usr\n99\n" +
                       pid + " " + pid + "\n" + pid + " " + pid + "\nCpus_allowed_list:\t" +
                       std::to_string(allowed_cpus().back()) + "\nhere\n");
    EXPECT_EQ(extra.read_all(), "x\n");
}

// Clusters have large environments, and a packet to the keeper has a fixed size. The kernel takes
// at most 128 KiB for one variable, hence 15 of them.
TEST(Keeper, TakesAnEnvironmentOfMegabytes) {
    Bench bench;
    Pipe output;
    WorkerStart start = shell("env | wc -c");
    for (int i = 0; i < 15; ++i)
        start.environment.push_back("BIG" + std::to_string(i) + "=" + std::string(100'000, 'x'));
    start.stdout_fd = output.in.get();
    bench.spawn(start);
    EXPECT_GT(std::stol(output.read_all()), 1'500'000);
    EXPECT_TRUE(bench.exited(1));
}

// A program on a file system that stalls, so that exec hangs. The keeper must serve all others
// meanwhile, since it has to keep a deadline. At last the program gets exactly what was asked for.
// A lease on the file plays the stall: the kernel lets exec wait until the lease is given back.
TEST(Keeper, AnExecThatHangsHoldsUpNobody) {
    const std::string program = ::testing::TempDir() + "ddprun-hanging-" + std::to_string(getpid());
    std::filesystem::copy_file("/bin/echo", program);
    UniqueFd lease(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
    // The kernel sends SIGIO when somebody wants to open the file, and SIGIO would end the test.
    std::signal(SIGIO, SIG_IGN);
    ASSERT_EQ(::fcntl(lease.get(), F_SETLEASE, F_WRLCK), 0) << std::strerror(errno);

    Bench bench;
    Pipe output;
    WorkerStart hanging = shell("");
    hanging.argv = {program, "late", "but", "whole"};
    hanging.stdout_fd = output.in.get();
    bench.spawn(hanging);
    for (int i = 0; i < 100; ++i) {
        WorkerStart other = shell("exit 0");
        // The child that hangs still reads its arguments from the keeper's memory. Many starts,
        // half of them with a large request, would overwrite memory that the keeper had freed too
        // early.
        if (i % 2 == 0) other.argv = {"/no/such/program", std::string(5'000, 'x')};
        bench.spawn(other);
    }
    EXPECT_TRUE(bench.answered(100));
    EXPECT_TRUE(bench.exited(50));
    EXPECT_EQ(bench.errors.size(), 50U);
    EXPECT_FALSE(output.ended());

    lease.reset();
    EXPECT_EQ(output.read_all(), "late but whole\n");
    EXPECT_TRUE(bench.exited(51));
    EXPECT_TRUE(bench.answered(101));
    std::filesystem::remove(program);
}

// As many workers as a large node may have. None is lost, and none is ended by a signal.
TEST(Keeper, StartsSixtyFourWorkersAtOnce) {
    Bench bench;
    for (int i = 0; i < 64; ++i) {
        WorkerStart start = shell("exit " + std::to_string(i));
        bench.spawn(start);
    }
    ASSERT_TRUE(bench.exited(64));
    ASSERT_EQ(bench.pids.size(), 64U);
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(bench.exits[bench.pids[static_cast<std::size_t>(i)]] & 0x7f, 0);
}
