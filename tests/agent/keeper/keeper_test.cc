// Workers by way of a real keeper: how they start, what they find, how their end is told.
#include "agent/keeper/keeper.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "agent/host/hardware.h"
#include "tests/agent/keeper/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;

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
    EXPECT_EQ(codes[ErrorCode::not_found], 2);
    EXPECT_EQ(codes[ErrorCode::refused], 3);
    EXPECT_TRUE(std::any_of(bench.errors.begin(), bench.errors.end(), [](const Error& error) {
        return error.sentence() == "cannot execute /etc/passwd: Permission denied";
    }));
    bench.spawn(shell("exit 0"));  // and the next one does
    EXPECT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.exits.size(), 1U);
}

// More at once than it forks in a row, and some that cannot run: each is answered, and with its own
// descriptors.
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

// Its own session, the standard signals, only its own descriptors, its directory, CPU and limit.
TEST(Keeper, GivesAWorkerACleanPlace) {
    Bench bench;
    Pipe output, extra;
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

// A program whose file cannot be opened yet, as on a file system that stalls (here: a lease on it):
// the keeper serves all others meanwhile, and the program gets what was asked for in the end.
TEST(Keeper, AnExecThatHangsHoldsUpNobody) {
    const std::string program = ::testing::TempDir() + "ddprun-hanging-" + std::to_string(getpid());
    std::filesystem::copy_file("/bin/echo", program);
    UniqueFd lease(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
    std::signal(SIGIO, SIG_IGN);  // says that somebody wants to open it
    ASSERT_EQ(::fcntl(lease.get(), F_SETLEASE, F_WRLCK), 0) << std::strerror(errno);

    Bench bench;
    Pipe output;
    WorkerStart hanging = shell("");
    hanging.argv = {program, "late", "but", "whole"};
    hanging.stdout_fd = output.in.get();
    bench.spawn(hanging);
    for (int i = 0; i < 100; ++i) {
        WorkerStart other = shell("exit 0");
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

// The time that a restart pays for processes. Printed, with a generous bound, for machines differ.