// The keeper as the last line of the fence: deadlines, sweeps, the death of ddprun, its own death.
// Keeper and workers are real processes. Each case stands for a way in which workers could outlive
// their generation and train beside the next one.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/keeper/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// A worker that is hard to kill: three processes. Two got away from it (a session of their own, a
// parent that is dead), and one is the worker itself, which waits. None of them reacts to SIGTERM.
// Each writes "x" to descriptor 3 when it runs, and keeps the descriptor open until it is gone.
constexpr const char* kFamily =
    "trap '' TERM; setsid sh -c '(sh -c \"echo x >&3; exec sleep 1000\" &) ; "
    "setsid sh -c \"echo x >&3; exec sleep 1000\" & exit 0' & echo x >&3; exec sleep 1000";

// The family with `alive` as its descriptor 3.
WorkerStart family(Pipe& alive) {
    WorkerStart start = shell(kFamily);
    start.extra = {{3, alive.in.get()}};
    return start;
}

// Waits until the three processes run: each writes "x" and a line end. The test's own writing end
// is closed first, so that the pipe ends with the family.
bool all_stand(Pipe& alive) {
    alive.in.reset();
    for (int i = 0; i < 6; ++i)
        if (!alive.read_byte()) return false;
    return true;
}

// A ddprun of its own, for the test to kill: it has a keeper with one family, and then does `then`.
// It closes its own ends of the pipe and of the link, so that only family and keeper hold them.
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

// How the process ended. -1 means any child. The test is a subreaper (keeper_test_main.cc), so an
// orphaned keeper becomes its child.
int wait_for(pid_t pid) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    return status;
}

// Starts a ddprun without workers that does `then`, and returns how it ended: with the code that
// `then` exits with, with 1 if `then` returns, or by the keeper's SIGKILL.
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

// The keeper is not scheduled from here to let_keeper_go(), as on a host under high load. The wait
// makes sure that it has stopped.
void hold_keeper(const Bench& bench) {
    const auto keeper = static_cast<pid_t>(bench.keeper.pid());
    ::kill(keeper, SIGSTOP);
    ::waitpid(keeper, nullptr, WUNTRACED);
}

void let_keeper_go(const Bench& bench) { ::kill(static_cast<pid_t>(bench.keeper.pid()), SIGCONT); }

}  // namespace

// A node says that its workers are gone only after a sweep. So the answer must come when the whole
// family is gone, not the worker alone, and after the worker's end has been reported. The last
// spawn shows that the keeper works on.
TEST(KeeperFence, ASweepLeavesNothing) {
    Bench bench;
    Pipe alive;
    bench.spawn(family(alive));
    ASSERT_TRUE(bench.answered(1));
    ASSERT_TRUE(all_stand(alive));
    bool swept = false;
    bench.keeper.sweep({}, [&](const LeftRunning&) {
        swept = true;
        EXPECT_EQ(bench.exits.size(), 1U);
        EXPECT_TRUE(alive.ended());
    });
    ASSERT_TRUE(bench.run_until([&] { return swept; }));
    bench.spawn(shell("exit 0"));
    EXPECT_TRUE(bench.exited(2));
}

// A node that is cut off: its lease passes, and nobody calls it. The keeper kills by itself and
// starts nothing more, because another node may already run the next generation.
TEST(KeeperFence, Rule4d_TheDeadlineKillsAndForbids) {
    Bench bench;
    Pipe alive;
    bench.spawn(family(alive));
    ASSERT_TRUE(all_stand(alive));
    // The lease of 10 s gives this test, which plays ddprun, a second to notice.
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

// Each Ack moves the deadline. The old one must not kill a healthy worker.
TEST(KeeperFence, AMovedDeadlineDoesNotFire) {
    Bench bench;
    bench.keeper.set_deadline(boot_now() + milliseconds{150}, seconds{10});
    bench.keeper.set_deadline(boot_now() + seconds{1000}, seconds{10});
    const Time begin = boot_now();
    // The worker outlives the first deadline by far, and its good end shows that nobody has killed
    // it. At least 400 ms have passed then, so the keeper has had the time to kill.
    bench.spawn(shell("sleep 0.8"));
    ASSERT_TRUE(bench.exited(1));
    EXPECT_GE(boot_now() - begin, milliseconds{400});
    EXPECT_EQ(bench.expired, 0);
    EXPECT_EQ(bench.exits.begin()->second, 0);
}

// kill -9 of ddprun. The frame lets the leader start the next generation at once, so it must come
// only when the whole family is gone. The port of this node's service is free after that, not
// before: the next ddprun that can take it meets no old workers.
TEST(KeeperFence, Rule12a_TheGoneFrameComesWhenAllIsGone) {
    Pipe alive, listener;
    int link[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link), 0);
    const pid_t agent = start_agent(alive, link[1], listener.in.get(),
                                    [](Bench& bench) { bench.run_until([] { return false; }); });
    ::close(link[1]);
    listener.in.reset();
    ASSERT_TRUE(all_stand(alive));
    ::kill(agent, SIGKILL);
    // The buffer is larger than the frame, so bytes too many would show.
    char frame[64] = {};
    pollfd wait{link[0], POLLIN, 0};
    ASSERT_GT(::poll(&wait, 1, kPatienceMs), 0);
    EXPECT_EQ(::read(link[0], frame, sizeof frame), 10);
    EXPECT_STREQ(frame, "gone frame");
    EXPECT_TRUE(alive.ended());
    EXPECT_EQ(listener.read_all(), "");
    EXPECT_EQ(wait_for(agent), W_EXITCODE(0, SIGKILL));
    // The orphaned keeper has become our child and ends by itself. There is no other process.
    EXPECT_GT(wait_for(-1), -1);
    EXPECT_EQ(::waitpid(-1, nullptr, 0), -1);
    ::close(link[0]);
}

// On the leader's own node there is no link, so no frame. The port must still be held until the
// family is gone. The folder of the job's error files, which no living ddprun can remove, goes as
// well.
TEST(KeeperFence, WithoutALinkThePortIsHeldAndTheFolderGoes) {
    Pipe alive, listener;
    std::string folder = ::testing::TempDir() + "bequeathed_XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    std::ofstream(folder + "/error.json") << "{}";
    const pid_t agent = ::fork();
    if (agent == 0) {
        Bench bench;
        bench.keeper.prepare_gone("", -1, listener.in.get());
        bench.keeper.remove_when_gone(folder, -1);
        listener.in.reset();
        bench.spawn(family(alive));
        alive.in.reset();
        alive.out.reset();
        // Waits here until the test kills it.
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

// A ddprun that hangs (here: stopped by a signal) cannot say that it noticed its deadline. It could
// run on later and act on an old state, so the keeper kills it, too, 0.1 lease after the deadline.
TEST(KeeperFence, Rule4e_AFrozenAgentIsKilled) {
    Pipe alive, listener, go;
    const pid_t agent = start_agent(alive, -1, listener.in.get(), [&go](Bench& bench) {
        // The deadline starts to run only when the family runs, else there would be nothing to
        // kill.
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

// The other side of the test before: a ddprun that answers is not killed at its deadline. The test
// itself plays ddprun, so a kill would end the whole test program.
TEST(KeeperFence, AnAgentThatNoticesLives) {
    Bench bench;
    bench.keeper.set_deadline(boot_now() + milliseconds{50}, seconds{5});
    ASSERT_TRUE(bench.run_until([&] { return bench.expired == 1; }));
    bench.keeper.set_deadline(kNever, seconds{1});
    bench.spawn(shell("sleep 0.4"));
    EXPECT_TRUE(bench.exited(1));
}

// On a loaded host ddprun gets too little of the processor to answer in time. It is not frozen.
TEST(KeeperFence, Rule4f_ASlowAgentLives) {
    const int end = end_of_agent([](Bench& bench) {
        const Time deadline = boot_now() + milliseconds{50};
        bench.keeper.set_deadline(deadline, milliseconds{200});
        while (boot_now() < deadline + milliseconds{300}) {
        }
        ::_exit(bench.run_until([&] { return bench.expired == 1; }) ? 0 : 1);
    });
    EXPECT_EQ(end, W_EXITCODE(0, 0));
}

// The keeper is not scheduled when the deadline passes. When it runs again, it reads the message
// that ddprun has noticed, and only then looks at its own timer. It must not kill this ddprun.
TEST(KeeperFence, AnAgentThatNoticesBeforeTheKeeperLives) {
    const int end = end_of_agent([](Bench& bench) {
        hold_keeper(bench);
        const Time deadline = boot_now() + milliseconds{50};
        // With a lease of zero the keeper kills at once, so an answer to its own question would
        // come too late. Only the message that is already there can save this ddprun.
        bench.keeper.set_deadline(deadline, Duration{});
        bench.run_until([deadline] { return boot_now() >= deadline; });
        bench.keeper.noticed();
        let_keeper_go(bench);
        // The keeper reports `expired` after the moment at which it would have killed this process.
        ::_exit(bench.run_until([&] { return bench.expired == 1; }) ? 0 : 1);
    });
    EXPECT_EQ(end, W_EXITCODE(0, 0));
}

// A message that was sent before a deadline says nothing about this deadline, even if the keeper
// reads it later. Two cases: the message was about an older deadline, or this deadline was set
// already but still ahead. Otherwise a ddprun that freezes just after its message would never be
// killed.
TEST(KeeperFence, AnAgentThatFreezesAfterAnEarlierWordIsKilled) {
    for (const bool set_before : {false, true}) {
        const int end = end_of_agent([set_before](Bench& bench) {
            hold_keeper(bench);
            bench.keeper.set_deadline(boot_now(), milliseconds{500});
            if (!set_before) bench.keeper.noticed();
            // Far enough ahead that the message is surely sent before it.
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

// The keeper is killed, and its processes become ddprun's. ddprun kills them, answers the open
// spawns, and starts a new keeper: one process that dies must not end the job.
TEST(KeeperFence, AKeeperThatDiesIsReplaced) {
    Bench bench;
    Pipe alive;
    bench.spawn(family(alive));
    ASSERT_TRUE(bench.answered(1));
    ASSERT_TRUE(all_stand(alive));
    ::kill(static_cast<pid_t>(bench.keeper.pid()), SIGKILL);
    ASSERT_TRUE(bench.run_until([&] { return bench.died == 1; }));
    EXPECT_TRUE(alive.ended());
    // Between the two keepers nothing can be started. The answer is an error, not silence.
    EXPECT_FALSE(bench.keeper.alive());
    bench.spawn(shell("exit 0"));
    ASSERT_TRUE(bench.answered(2));
    EXPECT_EQ(bench.errors.at(0).code(), ErrorCode::closed);
    ASSERT_TRUE(bench.keeper.restart());
    bench.spawn(shell("exit 5"));
    ASSERT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.exits.begin()->second, W_EXITCODE(5, 0));
}

// The keeper stands still: workers end, and nobody tells. ddprun kills it with everything below it,
// says for how long it did not answer, and goes on with another one.
TEST(KeeperFence, AKeeperThatFreezesIsReplaced) {
    Bench bench({}, milliseconds{200});
    Pipe alive;
    bench.spawn(family(alive));
    ASSERT_TRUE(bench.answered(1));
    ASSERT_TRUE(all_stand(alive));
    hold_keeper(bench);
    bool swept = false;
    bench.keeper.sweep({}, [&](const LeftRunning&) { swept = true; });
    ASSERT_TRUE(bench.run_until([&] { return bench.died == 1; }));
    EXPECT_TRUE(alive.ended());
    EXPECT_TRUE(swept);
    EXPECT_EQ(bench.frozen, 1);
    EXPECT_TRUE(bench.how_died.starts_with("did not answer for ")) << bench.how_died;
    ASSERT_TRUE(bench.keeper.restart());
    bench.spawn(shell("exit 5"));
    ASSERT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.exits.begin()->second, W_EXITCODE(5, 0));
}

// A keeper without work answers all the same, again and again.
TEST(KeeperFence, AKeeperThatWorksIsNotTakenForFrozen) {
    Bench bench({}, milliseconds{500});
    const Time end = boot_now() + seconds{2};
    bench.run_until([&] { return boot_now() >= end; });
    EXPECT_EQ(bench.frozen + bench.died, 0);
    bench.spawn(shell("exit 0"));
    EXPECT_TRUE(bench.exited(1));
}

// At the end of the job, too: nobody waits for a frozen keeper longer than was asked, and nothing
// is left.
TEST(KeeperFence, AFrozenKeeperIsEndedWithTheJob) {
    Bench bench;
    Pipe alive;
    bench.spawn(family(alive));
    ASSERT_TRUE(bench.answered(1));
    ASSERT_TRUE(all_stand(alive));
    hold_keeper(bench);
    const auto keeper = static_cast<pid_t>(bench.keeper.pid());
    EXPECT_TRUE(bench.keeper.shutdown(milliseconds{300}));
    EXPECT_TRUE(alive.ended());
    EXPECT_EQ(::kill(keeper, 0), -1);
}

// Something kills each keeper at its start. Without a limit ddprun would start keepers, and
// generations, for ever.
TEST(KeeperFence, KeepersThatDieAtOnceAreNotReplacedForEver) {
    Bench bench;
    int restarted = 0;
    for (Result<> again; again; ++restarted) {
        ASSERT_LT(restarted, 20);
        const int before = bench.died;
        ::kill(static_cast<pid_t>(bench.keeper.pid()), SIGKILL);
        ASSERT_TRUE(bench.run_until([&] { return bench.died == before + 1; }));
        again = bench.keeper.restart();
        if (!again) {
            EXPECT_EQ(again.error().code(), ErrorCode::unavailable);
        }
    }
    EXPECT_EQ(restarted, 5);  // the fifth was refused
}

// A signal to the process group, Ctrl-C or Ctrl-Z at a terminal for example, reaches the keeper,
// too. Without the keeper nobody would be left to kill workers.
TEST(KeeperFence, TheKeeperIgnoresSignals) {
    Bench bench;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM, SIGTSTP})
        ::kill(static_cast<pid_t>(bench.keeper.pid()), signal);
    bench.spawn(shell("exit 0"));
    EXPECT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.died, 0);
}
