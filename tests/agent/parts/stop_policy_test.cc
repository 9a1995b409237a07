// What a stop is on one node.
#include "agent/parts/stop_policy.h"

#include <gmock/gmock.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::agent;
using namespace ddprun::test;
using rendezvous::StopCause;

namespace {

StopOptions in_slurm(RequeueMode requeue = RequeueMode::automatic) {
    StopOptions options;
    options.in_slurm = true;
    options.requeue = requeue;
    options.requeue_signals = {SIGUSR1};
    options.job_end = at(1000);
    return options;
}

// At least a minute before the end, longer where snapshots take long, half of a short job.
TEST(StopPolicy, TellsWorkersEarlyEnough) {
    StopOptions options = in_slurm();
    EXPECT_EQ(stop_before(options, {}), sec(60));
    EXPECT_EQ(stop_before(options, sec(100)), sec(210));
    options.first_left = sec(300);
    EXPECT_EQ(stop_before(options, sec(100)), sec(150));
    options.before = sec(20);
    EXPECT_EQ(stop_before(options, sec(100)), sec(20)) << "what the user says counts";
    EXPECT_EQ(stop_due_at(options, sec(100)), at(980));
    options.job_end.reset();
    EXPECT_EQ(stop_due_at(options, {}), kNever);
}

// After a plain SIGTERM nothing is requeued, unless the user has asked for it.
TEST(StopPolicy, RequeuesWhatTheUserHasNamed) {
    using enum RequeueMode;
    const auto requeues = [](RequeueMode mode, int signal) {
        return stop_by_signal(signal, in_slurm(mode), at(5)).requeue;
    };
    EXPECT_TRUE(requeues(automatic, SIGUSR1));
    EXPECT_FALSE(requeues(automatic, SIGTERM));
    EXPECT_FALSE(requeues(automatic, SIGUSR2));
    EXPECT_TRUE(requeues(always, SIGTERM));
    EXPECT_FALSE(requeues(always, SIGINT));
    EXPECT_FALSE(requeues(never, SIGUSR1));
    EXPECT_TRUE(stop_by_time_limit(in_slurm(), at(5)).requeue);
    EXPECT_FALSE(stop_by_time_limit(in_slurm(never), at(5)).requeue);
}

// The time limit's own SIGTERM is no scancel; it has not been seen coming either.
TEST(StopPolicy, KnowsTheTimeLimitsSigterm) {
    EXPECT_EQ(stop_by_signal(SIGTERM, in_slurm(), at(999)).cause, StopCause::signal);
    EXPECT_EQ(stop_by_signal(SIGTERM, in_slurm(), at(1000)).cause, StopCause::time_limit);
    EXPECT_FALSE(stop_by_signal(SIGTERM, in_slurm(), at(1000)).requeue);
    EXPECT_EQ(stop_by_signal(SIGINT, in_slurm(), at(1000)).cause, StopCause::signal);
}

TEST(StopPolicy, ChoosesWhatWorkersGet) {
    StopOptions options = in_slurm();
    EXPECT_EQ(signal_for_workers(StopCause::signal, SIGINT, options), SIGINT);
    EXPECT_EQ(signal_for_workers(StopCause::named_signal, SIGUSR1, options), SIGTERM);
    EXPECT_EQ(signal_for_workers(StopCause::time_limit, 0, options), SIGTERM);
    options.worker_signal = SIGUSR2;
    EXPECT_EQ(signal_for_workers(StopCause::signal, SIGINT, options), SIGUSR2);
}

TEST(StopPolicy, LeavesTimeToRecordTheEnd) {
    const StopOptions options = in_slurm();
    const auto grace = [&](StopCause cause, std::optional<Duration> left) {
        return grace_of(cause, left, sec(25), options, {});
    };
    EXPECT_EQ(grace(StopCause::signal, sec(600)), sec(25));
    EXPECT_EQ(grace(StopCause::larger_world, {}), sec(25));
    EXPECT_EQ(grace(StopCause::time_limit, sec(60)), sec(50));
    EXPECT_EQ(grace(StopCause::time_limit, sec(8)), sec(4));
    EXPECT_EQ(grace(StopCause::time_limit, sec(-1)), sec(25)) << "Slurm kills after its own grace";
    EXPECT_EQ(grace(StopCause::named_signal, {}), sec(50)) << "as early as a time limit";
}

TEST(StopPolicy, IsReadableByWorkers) {
    const StopHint hint{Generation{3}, StopCause::time_limit, "stopped: \xff", SIGTERM, sec(50),
                        true};
    const auto json = nlohmann::json::parse(to_json(hint, sec(1000)));
    EXPECT_EQ(json.at("reason"), "time_limit");
    EXPECT_EQ(json.at("signal"), "SIGTERM");
    EXPECT_EQ(json.at("seconds_left"), 50);
    EXPECT_EQ(json.at("killed_at"), 1050);
    EXPECT_EQ(json.at("requeue"), true);
    EXPECT_EQ(json.at("generation"), 3);
}

}  // namespace
