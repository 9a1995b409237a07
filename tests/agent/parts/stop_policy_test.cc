// What a stop means on one node: when it is due, which signal the workers get, how long they have,
// and what they can read about it. Pure.
#include "agent/parts/stop_policy.h"

#include "agent/parts/snapshot_hint.h"

#include <gmock/gmock.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::agent;
using namespace ddprun::test;
using rendezvous::StopCause;

namespace {

// A batch job whose time ends at 1000, with --requeue-signal=USR1.
StopOptions in_slurm(RequeueMode requeue = RequeueMode::automatic) {
    StopOptions options;
    options.in_slurm = true;
    options.requeue = requeue;
    options.requeue_signals = {SIGUSR1};
    options.job_end = at(1000);
    return options;
}

// At least a minute before the end. More where snapshots take long: twice the last one, and 10 s.
// At most half of a short job's time, so that it gets to train at all.
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

// A plain SIGTERM may be scancel's, and a cancelled job must not come back. So it leads to a
// requeue only if the user has said "always". SIGINT never does.
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

// Of an elastic job outside Slurm. Ctrl-C is the user's, who wants the end of all.
TEST(StopPolicy, LeavesBySigtermAlone) {
    StopOptions options;
    options.leaves = true;
    EXPECT_EQ(stop_by_signal(SIGTERM, options, at(5)).cause, StopCause::node_leaves);
    EXPECT_EQ(stop_by_signal(SIGINT, options, at(5)).cause, StopCause::signal);
    options.requeue = RequeueMode::always;
    EXPECT_EQ(stop_by_signal(SIGTERM, options, at(5)).cause, StopCause::signal);
    EXPECT_STREQ(to_string(StopCause::node_leaves), "node_leaves");
}

// A SIGTERM at the end of the job's time is Slurm's and no scancel. Nobody has seen it coming, so
// there was no time for a snapshot, and nothing is requeued.
TEST(StopPolicy, KnowsTheTimeLimitsSigterm) {
    EXPECT_EQ(stop_by_signal(SIGTERM, in_slurm(), at(999)).cause, StopCause::signal);
    EXPECT_EQ(stop_by_signal(SIGTERM, in_slurm(), at(1000)).cause, StopCause::time_limit);
    EXPECT_FALSE(stop_by_signal(SIGTERM, in_slurm(), at(1000)).requeue);
    EXPECT_EQ(stop_by_signal(SIGINT, in_slurm(), at(1000)).cause, StopCause::signal);
    // The lines about a stop name the signal once.
    EXPECT_EQ(stop_by_signal(SIGINT, in_slurm(), at(1000)).reason, "SIGINT");
    EXPECT_EQ(stop_by_signal(SIGTERM, in_slurm(), at(1000)).reason, "SIGTERM (time limit)");
    EXPECT_EQ(stop_by_signal(SIGUSR1, in_slurm(), at(5)).reason, "SIGUSR1 (--requeue-signal)");
}

// Workers get the user's own signal, since a program may handle SIGINT in its own way. A signal
// that is named for a requeue is between Slurm and ddprun, so they get SIGTERM then.
TEST(StopPolicy, ChoosesWhatWorkersGet) {
    StopOptions options = in_slurm();
    EXPECT_EQ(signal_for_workers(StopCause::signal, SIGINT, options), SIGINT);
    EXPECT_EQ(signal_for_workers(StopCause::named_signal, SIGUSR1, options), SIGTERM);
    EXPECT_EQ(signal_for_workers(StopCause::time_limit, 0, options), SIGTERM);
    options.worker_signal = SIGUSR2;
    EXPECT_EQ(signal_for_workers(StopCause::signal, SIGINT, options), SIGUSR2);
}

// 10 s are kept back for the kill and the record of the end. With 8 s left that would be less than
// nothing, so the workers get half.
TEST(StopPolicy, Rule23d_LeavesTimeToRecordTheEnd) {
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

// The file that DDPRUN_STOP_FILE names. A sentence may hold any bytes, and the JSON must stay
// valid.
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

// The file that DDPRUN_SNAPSHOT_FILE names. Whoever asks may call himself what he likes.
TEST(SnapshotHint, IsReadableByWorkers) {
    const SnapshotHint hint{Generation{3}, {5'000'001, "alice\xff@login1"}};
    const std::string text = to_json(hint, sec(1000));
    const auto json = nlohmann::json::parse(text);
    EXPECT_EQ(json.at("format"), "ddprun snapshot");
    EXPECT_EQ(json.at("number"), 5'000'001);
    EXPECT_EQ(json.at("asked_at"), 1000);
    EXPECT_EQ(json.at("generation"), 3);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << "one line";
}

}  // namespace
