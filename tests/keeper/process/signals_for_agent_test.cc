// Signals to the keeper: a worker's go on to ddprun (this process), those of others do not.
#include "keeper/process/signals_for_agent.h"

#include <csignal>

#include "tests/keeper/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

volatile std::sig_atomic_t heard = 0;

// Counts a signal of this process while it lives.
class Listener {
  public:
    explicit Listener(int signal) : signal_(signal) {
        heard = 0;
        struct sigaction count {};
        count.sa_handler = [](int) { heard = heard + 1; };
        ::sigaction(signal, &count, &before_);
    }
    ~Listener() { ::sigaction(signal_, &before_, nullptr); }

  private:
    int signal_;
    struct sigaction before_ {};
};

}  // namespace

// A worker signals its parent, as programs do that know torchrun, where the parent is the launcher.
TEST(SignalsForAgent, AWorkersGoesOn) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGRTMIN + 1}) {
        const Listener listener(signal);
        Bench bench;
        bench.spawn(shell("kill -" + std::to_string(signal) + " $PPID; exec sleep 1000"));
        EXPECT_TRUE(bench.run_until([] { return heard == 1; })) << signal;
    }
}

// What is passed on to the workers goes to those that are known to run. A signal that overtook the
// news that its sender runs would reach all but the sender; one that came after the news of its
// death would come too late to stop the job.
TEST(SignalsForAgent, AWorkersComesBetweenItsStartAndItsDeath) {
    const Listener listener(SIGUSR1);
    Bench bench;
    for (std::size_t i = 1; i <= 20; ++i) {
        heard = 0;
        Pipe done;
        WorkerStart start = shell("kill -USR1 $PPID");
        start.extra = {{3, done.in.get()}};
        bench.spawn(start);
        // All of it has happened before the loop takes the first reply.
        done.read_all();
        EXPECT_EQ(heard, 0) << "a signal has overtaken the replies";
        ASSERT_TRUE(bench.exited(i));
    }
    const std::vector<std::string> once{"started", "signalled", "exited"};
    for (std::size_t i = 0; i < bench.order.size(); ++i)
        EXPECT_EQ(bench.order[i], once[i % 3]) << i;
    EXPECT_EQ(bench.order.size(), 60U);
}

// /bin/kill has gone before anybody can look at it. A grandchild with a session of its own asks for
// nothing else than a worker.
TEST(SignalsForAgent, ADescendantsGoesOnAndSoDoesThatOfOneThatHasGone) {
    for (const char* script : {"sh -c \"/bin/kill -USR1 $PPID; true\"; exec sleep 1000",
                               "setsid sh -c \"kill -USR1 $PPID; sleep 1000\"; exec sleep 1000"}) {
        const Listener listener(SIGUSR1);
        Bench bench;
        bench.spawn(shell(script));
        EXPECT_TRUE(bench.run_until([] { return heard == 1; })) << script;
    }
}

// Whoever signals all processes of a step has signalled ddprun, too. The worker of the second spawn
// proves that the keeper has read the signal: both are handled in the same turn or a later one.
TEST(SignalsForAgent, ThatOfOthersDoesNotGoOn) {
    const Listener listener(SIGUSR1);
    Bench bench;
    ::kill(static_cast<pid_t>(bench.keeper.pid()), SIGUSR1);
    for (std::size_t i = 1; i <= 2; ++i) {
        bench.spawn(shell("exit 0"));
        ASSERT_TRUE(bench.exited(i));
    }
    EXPECT_EQ(heard, 0);
}

// Ctrl-Z and what the kernel does with a terminal are terminal.h's business. A keeper that passed
// SIGTSTP on would stop ddprun.
TEST(SignalsForAgent, JobControlDoesNotGoOn) {
    for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGPIPE}) {
        const Listener listener(signal);
        Bench bench;
        bench.spawn(shell("kill -" + std::to_string(signal) + " $PPID"));
        ASSERT_TRUE(bench.exited(1));
        bench.spawn(shell("exit 0"));
        ASSERT_TRUE(bench.exited(2));
        EXPECT_EQ(heard, 0) << signal;
    }
}
