// A polite signal and real processes: who gets it, and who does not.
#include "agent/workers/worker_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "base/system/boot_clock.h"
#include "base/system/small_file.h"
#include "keeper/killing/descendants.h"

namespace ddprun::agent {
namespace {

// A program that runs as a worker: it leads a group, and tells on a pipe what happens to it.
class Program {
  public:
    explicit Program(const std::string& script, const std::string& program = "python3") {
        std::array<int, 2> ends{};
        std::array<int, 2> input{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0 || ::pipe2(input.data(), O_CLOEXEC) != 0) return;
        out_ = UniqueFd(ends[0]);
        in_ = UniqueFd(input[1]);
        worker.pid = ::fork();
        if (worker.pid == 0) {
            ::setsid();
            ::dup2(input[0], 0);
            ::dup2(ends[1], 1);
            ::execlp(program.c_str(), program.c_str(), "-c", script.c_str(), nullptr);
            ::_exit(127);
        }
        ::close(ends[1]);
        ::close(input[0]);
        worker.pidfd.reset(
            static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(worker.pid), 0)));
    }
    ~Program() {
        ::kill(static_cast<pid_t>(-worker.pid), SIGKILL);
        status();
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // The next line, without its end; empty at the end of the pipe.
    std::string line() const {
        std::string text;
        for (char c = 0; ::read(out_.get(), &c, 1) == 1 && c != '\n';) text += c;
        return text;
    }
    // Its input ends.
    void go() { in_.reset(); }
    int status() {
        if (status_ < 0 && ::waitpid(static_cast<pid_t>(worker.pid), &status_, 0) < 0) status_ = 0;
        return status_;
    }

    WorkerProcess worker;

  private:
    UniqueFd out_, in_;
    int status_ = -1;
};

// Starts a child that dies of the signal, as a loader does, and waits for `ask`, which comes back
// when the signal has come.
std::string with_loader(const std::string& ask) {
    return "import os, signal, sys, time\n"
           "def say(text): os.write(1, (text + '\\n').encode())\n"
           "ready, go = os.pipe()\n"
           "loader = os.fork()\n"
           "if loader == 0:\n"
           "    signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
           "    signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
           "    os.write(go, b'x')\n"
           "    while True: signal.pause()\n"
           "os.read(ready, 1)\n" +
           ask +
           "time.sleep(0.2)  # a loader that got the signal has ended by then\n"
           "say('loader lives' if os.waitpid(loader, os.WNOHANG)[0] == 0 else 'loader died')\n"
           "os.kill(loader, 9)\n";
}

const char* const kHandler =
    "came = []\n"
    "for number in (2, 10, 15): signal.signal(number, lambda number, frame: came.append(number))\n"
    "say('up')\n"
    "while not came: time.sleep(0.01)\n"
    "say('got %d' % came[0])\n";

// Whether a thread of it comes to sigwait() within half a minute.
bool waits_for_signals(std::int64_t pid) {
    const Time give_up = boot_now() + std::chrono::seconds{30};
    for (; boot_now() < give_up; std::this_thread::sleep_for(std::chrono::milliseconds{5}))
        for (const std::int64_t thread : threads_of(pid))
            if (read_small_file("/proc/" + std::to_string(thread) + "/wchan")
                    .starts_with("do_sigtimedwait"))
                return true;
    return false;
}

TEST(WorkerProcessSignal, RankWithHandlerKeepsItsLoaders) {
    for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
        Program program(with_loader(kHandler));
        ASSERT_EQ(program.line(), "up");
        program.worker.signal(number);
        EXPECT_EQ(program.line(), "got " + std::to_string(number));
        EXPECT_EQ(program.line(), "loader lives");
    }
}

TEST(WorkerProcessSignal, RankThatWaitsForSignalsKeepsItsLoaders) {
    const char* const kAlone =
        "signal.pthread_sigmask(signal.SIG_BLOCK, [15])\n"
        "say('up')\n"
        "say('got %d' % signal.sigwait([15]))\n";
    const char* const kThread =
        "import threading\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [15])\n"
        "waiter = threading.Thread(target=lambda: say('got %d' % signal.sigwait([15])))\n"
        "waiter.start()\n"
        "say('up')\n"
        "waiter.join()\n";
    for (const char* script : {kAlone, kThread}) {
        Program program(with_loader(script));
        ASSERT_EQ(program.line(), "up");
        ASSERT_TRUE(waits_for_signals(program.worker.pid));
        program.worker.signal(SIGTERM);
        EXPECT_EQ(program.line(), "got 15");
        EXPECT_EQ(program.line(), "loader lives");
    }
}

// The kernel gives the signal to a thread that does not block it, and the program dies.
TEST(WorkerProcessSignal, OneThreadThatBlocksIsNotEnough) {
    Program program(
        with_loader("import threading\n"
                    "threading.Thread(target=lambda: time.sleep(1000)).start()\n"
                    "signal.pthread_sigmask(signal.SIG_BLOCK, [15])\n"
                    "say('up')\n"
                    "time.sleep(1000)\n"));
    ASSERT_EQ(program.line(), "up");
    program.worker.signal(SIGTERM);
    EXPECT_EQ(program.line(), "");
    EXPECT_TRUE(WIFSIGNALED(program.status()) && WTERMSIG(program.status()) == SIGTERM);
}

TEST(WorkerProcessSignal, PlainProgramEndsWithAllThatItHasStarted) {
    Program program(with_loader("say('up')\nwhile True: time.sleep(1)\n"));
    ASSERT_EQ(program.line(), "up");
    program.worker.signal(SIGTERM);
    EXPECT_EQ(program.line(), "");  // the loader holds the pipe, too
    EXPECT_TRUE(WIFSIGNALED(program.status()) && WTERMSIG(program.status()) == SIGTERM);
}

TEST(WorkerProcessSignal, ProgramInAShellGetsItAndTheShellWaitsForIt) {
    Program program("python3 -c \"" + with_loader(kHandler) + "\"\necho \"shell: $?\"", "bash");
    ASSERT_EQ(program.line(), "up");
    program.worker.signal(SIGTERM);
    EXPECT_EQ(program.line(), "got 15");
    EXPECT_EQ(program.line(), "loader lives");
    EXPECT_EQ(program.line(), "shell: 0");
}

TEST(WorkerProcessPassOn, RankWithoutHandlerIsSparedUntilItHasOne) {
    Program program(
        "import os, signal, sys, time\n"
        "def say(text): os.write(1, (text + '\\n').encode())\n"
        "say('up')\n"
        "sys.stdin.read()\n"
        "signal.signal(10, lambda *_: say('got it'))\n"
        "say('handler')\n"
        "while True: time.sleep(1)\n");
    ASSERT_EQ(program.line(), "up");
    EXPECT_FALSE(program.worker.pass_on(SIGUSR1));
    program.go();
    ASSERT_EQ(program.line(), "handler");
    EXPECT_TRUE(program.worker.pass_on(SIGUSR1));
    EXPECT_EQ(program.line(), "got it");
}

TEST(WorkerProcessPassOn, ShellIsSparedAndItsProgramGetsIt) {
    Program program("python3 -c \"" + with_loader(kHandler) + "\"\necho \"shell: $?\"", "bash");
    ASSERT_EQ(program.line(), "up");
    EXPECT_TRUE(program.worker.pass_on(SIGUSR1));
    EXPECT_EQ(program.line(), "got 10");
    EXPECT_EQ(program.line(), "loader lives");
    EXPECT_EQ(program.line(), "shell: 0");
}

TEST(WorkerProcessPassOn, EndedWorkerNeedsNothing) {
    Program program("echo up", "bash");
    ASSERT_EQ(program.line(), "up");
    program.status();
    EXPECT_TRUE(program.worker.pass_on(SIGUSR1));
}

}  // namespace
}  // namespace ddprun::agent
