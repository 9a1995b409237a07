// The keeper as the last line of the fence: deadlines, sweeps, the death of ddprun, its own death.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "tests/agent/keeper/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Two that got away (own session, parent dead) and one that waits; each says "x" on descriptor 3
// when it stands, and holds it until it is gone. None of them minds SIGTERM.
constexpr const char* kFamily =
    "trap '' TERM; setsid sh -c '(sh -c \"echo x >&3; exec sleep 1000\" &) ; "
    "setsid sh -c \"echo x >&3; exec sleep 1000\" & exit 0' & echo x >&3; exec sleep 1000";

WorkerStart family(Pipe& alive) {
    WorkerStart start = shell(kFamily);
    start.extra = {{3, alive.in.get()}};
    return start;
}

bool all_stand(Pipe& alive) {
    alive.in.reset();
    for (int i = 0; i < 6; ++i)
        if (!alive.read_byte()) return false;
    return true;
}

// A ddprun of its own, for the test to kill: it has a keeper with one family, and then does `then`.
pid_t start_agent(Pipe& alive, int link, int listener, const std::function<void(Bench&)>& then) {
    const pid_t agent = ::fork();
    if (agent != 0) return agent;
    {
        Bench bench;
        bench.keeper.prepare_gone("gone frame", link, listener);
        bench.spawn(family(alive));
        alive.in.reset();
        alive.out.reset();
        ::close(link);
        if (bench.answered(1)) then(bench);
    }
    ::_exit(1);
}

int wait_for(pid_t pid) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    return status;
}

// How a ddprun without workers ends that does `then`.
int end_of_agent(const std::function<void(Bench&)>& then) {
    const pid_t agent = ::fork();
    if (agent == 0) {
        Bench bench;
        then(bench);
        ::_exit(1);
    }
    const int status = wait_for(agent);
    EXPECT_GT(wait_for(-1), -1);  // its keeper
    return status;
}

// The keeper is not scheduled from here to let_keeper_go().
void hold_keeper(const Bench& bench) {
    const auto keeper = static_cast<pid_t>(bench.keeper.pid());
    ::kill(keeper, SIGSTOP);
    ::waitpid(keeper, nullptr, WUNTRACED);
}

void let_keeper_go(const Bench& bench) { ::kill(static_cast<pid_t>(bench.keeper.pid()), SIGCONT); }

}  // namespace

TEST(KeeperFence, ASweepLeavesNothing) {
    Bench bench;
    Pipe alive;
    bench.spawn(family(alive));
    ASSERT_TRUE(bench.answered(1));
    ASSERT_TRUE(all_stand(alive));
    bool swept = false;
    bench.keeper.sweep([&] {
        swept = true;
        EXPECT_EQ(bench.exits.size(), 1U);
        EXPECT_TRUE(alive.ended());
    });
    ASSERT_TRUE(bench.run_until([&] { return swept; }));
    bench.spawn(shell("exit 0"));
    EXPECT_TRUE(bench.exited(2));
}

TEST(KeeperFence, TheDeadlineKillsAndForbids) {
    Bench bench;
    Pipe alive;
    bench.spawn(family(alive));
    ASSERT_TRUE(all_stand(alive));
    const Time deadline = boot_now() + milliseconds{100};
    bench.keeper.set_deadline(deadline, seconds{10});
    ASSERT_TRUE(bench.run_until([&] { return bench.expired == 1; }));
    EXPECT_GE(boot_now(), deadline);
    EXPECT_TRUE(alive.ended());
    EXPECT_EQ(bench.exits.size(), 1U);
    bench.spawn(shell("exit 0"));
    ASSERT_TRUE(bench.answered(2));
    EXPECT_EQ(bench.errors.at(0).code(), ErrorCode::timed_out);
    // A new generation, a new deadline.
    bench.keeper.set_deadline(boot_now() + seconds{1000}, seconds{10});
    bench.spawn(shell("exit 0"));
    EXPECT_TRUE(bench.exited(2));
}

TEST(KeeperFence, AMovedDeadlineDoesNotFire) {
    Bench bench;
    bench.keeper.set_deadline(boot_now() + milliseconds{150}, seconds{10});
    bench.keeper.set_deadline(boot_now() + seconds{1000}, seconds{10});
    const Time begin = boot_now();
    bench.spawn(shell("sleep 0.8"));
    ASSERT_TRUE(bench.exited(1));
    EXPECT_GE(boot_now() - begin, milliseconds{400});
    EXPECT_EQ(bench.expired, 0);
    EXPECT_EQ(bench.exits.begin()->second, 0);
}

// kill -9 of ddprun: everything it had started goes, then comes the word, then the port is free.
TEST(KeeperFence, TheGoneFrameComesWhenAllIsGone) {
    Pipe alive, listener;
    int link[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link), 0);
    const pid_t agent = start_agent(alive, link[1], listener.in.get(),
                                    [](Bench& bench) { bench.run_until([] { return false; }); });
    ::close(link[1]);
    listener.in.reset();
    ASSERT_TRUE(all_stand(alive));
    ::kill(agent, SIGKILL);
    char frame[64] = {};
    pollfd wait{link[0], POLLIN, 0};
    ASSERT_GT(::poll(&wait, 1, kPatienceMs), 0);
    EXPECT_EQ(::read(link[0], frame, sizeof frame), 10);
    EXPECT_STREQ(frame, "gone frame");
    EXPECT_TRUE(alive.ended());
    EXPECT_EQ(listener.read_all(), "");
    EXPECT_EQ(wait_for(agent), W_EXITCODE(0, SIGKILL));
    EXPECT_GT(wait_for(-1), -1);  // the keeper, which has come to us; and nobody else
    EXPECT_EQ(::waitpid(-1, nullptr, 0), -1);
    ::close(link[0]);
}

// Without a frame (the leader's own node) the port is still held until the workers are gone; and
// the folder goes with them.
TEST(KeeperFence, WithoutALinkThePortIsHeldAndTheFolderGoes) {
    Pipe alive, listener;
    std::string folder = ::testing::TempDir() + "bequeathed_XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    std::ofstream(folder + "/error.json") << "{}";
    const pid_t agent = ::fork();
    if (agent == 0) {
        Bench bench;
        bench.keeper.prepare_gone("", -1, listener.in.get());
        bench.keeper.remove_when_gone(folder);
        listener.in.reset();
        bench.spawn(family(alive));
        alive.in.reset();
        alive.out.reset();
        bench.run_until([] { return false; });
        ::_exit(1);
    }
    listener.in.reset();
    ASSERT_TRUE(all_stand(alive));
    EXPECT_FALSE(listener.ended());
    EXPECT_TRUE(std::filesystem::exists(folder));
    ::kill(agent, SIGKILL);
    EXPECT_EQ(wait_for(agent), W_EXITCODE(0, SIGKILL));
    EXPECT_EQ(listener.read_all(), "");
    EXPECT_TRUE(alive.ended());
    EXPECT_GT(wait_for(-1), -1);  // the keeper
    EXPECT_FALSE(std::filesystem::exists(folder));
}

// A ddprun that hangs cannot say that it noticed its deadline: it goes too, 0.1 lease later.
TEST(KeeperFence, AFrozenAgentIsKilled) {
    Pipe alive, listener, go;
    const pid_t agent = start_agent(alive, -1, listener.in.get(), [&go](Bench& bench) {
        if (!go.read_byte()) return;
        bench.keeper.set_deadline(boot_now() + milliseconds{100}, seconds{1});
        ::raise(SIGSTOP);
    });
    ASSERT_TRUE(all_stand(alive));
    ASSERT_EQ(::write(go.in.get(), "x", 1), 1);
    EXPECT_EQ(wait_for(agent), W_EXITCODE(0, SIGKILL));
    EXPECT_EQ(listener.in.get() >= 0 ? listener.read_all() : "", "");
    EXPECT_TRUE(alive.ended());
    EXPECT_GT(wait_for(-1), -1);
    EXPECT_EQ(::waitpid(-1, nullptr, 0), -1);
}

TEST(KeeperFence, AnAgentThatNoticesLives) {
    Bench bench;
    bench.keeper.set_deadline(boot_now() + milliseconds{50}, seconds{5});
    ASSERT_TRUE(bench.run_until([&] { return bench.expired == 1; }));
    bench.keeper.set_deadline(kNever, seconds{1});
    bench.spawn(shell("sleep 0.4"));  // longer than 0.1 lease; we are still here after it
    EXPECT_TRUE(bench.exited(1));
}

// The keeper was not scheduled when the deadline passed, and finds the word that ddprun noticed it
// before its own timer. The lease is so short that another answer would come too late.
TEST(KeeperFence, AnAgentThatNoticesBeforeTheKeeperLives) {
    const int end = end_of_agent([](Bench& bench) {
        hold_keeper(bench);
        const Time deadline = boot_now() + milliseconds{50};
        bench.keeper.set_deadline(deadline, Duration{});
        bench.run_until([deadline] { return boot_now() >= deadline; });
        bench.keeper.noticed();
        let_keeper_go(bench);
        // It says so after the moment at which it would have killed us.
        ::_exit(bench.run_until([&] { return bench.expired == 1; }) ? 0 : 1);
    });
    EXPECT_EQ(end, W_EXITCODE(0, 0));
}

// What was said before a deadline passed is no word about it, though the keeper reads it only later;
// whether it was about an older deadline, or said when this one was set already.
TEST(KeeperFence, AnAgentThatFreezesAfterAnEarlierWordIsKilled) {
    for (const bool set_before : {false, true}) {
        const int end = end_of_agent([set_before](Bench& bench) {
            hold_keeper(bench);
            bench.keeper.set_deadline(boot_now(), milliseconds{500});
            if (!set_before) bench.keeper.noticed();
            const Time deadline = boot_now() + milliseconds{500};
            bench.keeper.set_deadline(deadline, milliseconds{500});
            if (set_before) bench.keeper.noticed();
            bench.run_until([deadline] { return boot_now() >= deadline; });
            let_keeper_go(bench);
            ::raise(SIGSTOP);
        });
        EXPECT_EQ(end, W_EXITCODE(0, SIGKILL)) << set_before;
    }
}

// The keeper is killed: ddprun adopts and kills what it left, open spawns are answered, and a new
// keeper takes over.
TEST(KeeperFence, AKeeperThatDiesIsReplaced) {
    Bench bench;
    Pipe alive;
    bench.spawn(family(alive));
    ASSERT_TRUE(bench.answered(1));
    ASSERT_TRUE(all_stand(alive));
    ::kill(static_cast<pid_t>(bench.keeper.pid()), SIGKILL);
    ASSERT_TRUE(bench.run_until([&] { return bench.died == 1; }));
    EXPECT_TRUE(alive.ended());
    EXPECT_FALSE(bench.keeper.alive());
    bench.spawn(shell("exit 0"));
    ASSERT_TRUE(bench.answered(2));
    EXPECT_EQ(bench.errors.at(0).code(), ErrorCode::closed);
    ASSERT_TRUE(bench.keeper.restart());
    bench.spawn(shell("exit 5"));
    ASSERT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.exits.begin()->second, W_EXITCODE(5, 0));
}

// Signals that end others do not end it.
TEST(KeeperFence, TheKeeperIgnoresSignals) {
    Bench bench;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM, SIGTSTP})
        ::kill(static_cast<pid_t>(bench.keeper.pid()), signal);
    bench.spawn(shell("exit 0"));
    EXPECT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.died, 0);
}
