// The pipe of a worker that reports without a pause. `while True: os.write(3, b"\n" * 65536)` in
// one rank once stopped the output, the signals and the Beats of its node, so the lease passed.
#include "agent/workers/progress_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <string>

#include "tests/support/loop.h"

namespace ddprun::agent {
namespace {

// More than any test needs: here a pipe that is always full gives up, so that a failing test ends.
constexpr int kMost = 20'000;

// A pipe that is never empty: whenever it is read, it is filled again.
struct FullPipe {
    explicit FullPipe(asio::io_context& loop)
        : pipe(loop, std::make_shared<TurnBudget>(loop), [this](const ProgressReport& report) {
              newest = report;
              if (++reports < kMost) refill();
          }) {
        end = pipe.open();
        ::fcntl(end.get(), F_SETFL, O_NONBLOCK);
        refill();
    }
    void refill() {
        std::string lines;
        for (int i = 0; i < 500; ++i) lines += "step=1\n";
        while (::write(end.get(), lines.data(), lines.size()) > 0) {
        }
    }

    int reports = 0;
    ProgressReport newest;
    ProgressPipe pipe;
    UniqueFd end;
};

// Other work on the loop gets its turn, and thousands of lines are no thousands of events.
TEST(ProgressPipe, LeavesTheLoopToOthers) {
    asio::io_context loop{1};
    FullPipe full(loop);
    int turns = 0;
    std::function<void()> other = [&] {
        if (++turns < 100) asio::post(loop, other);
    };
    asio::post(loop, other);
    ASSERT_TRUE(run_until(loop, [&] { return turns == 100; }));
    EXPECT_LE(full.reports, 102) << "one for each turn";
    EXPECT_GE(full.reports, 10);
}

// The worker has exited, and a process that it left behind writes on.
TEST(ProgressPipe, EndsWhoeverWritesOn) {
    asio::io_context loop{1};
    FullPipe full(loop);
    full.pipe.finish();
    EXPECT_GT(full.reports, 10) << "what was in the pipe counts";
    EXPECT_LT(full.reports, kMost);
}

// Of the lines that come together the newest number of each kind counts.
TEST(ProgressPipe, ReportsTheNewestNumbers) {
    asio::io_context loop{1};
    std::vector<ProgressReport> reports;
    ProgressPipe pipe(loop, std::make_shared<TurnBudget>(loop),
                      [&](const ProgressReport& report) { reports.push_back(report); });
    const UniqueFd end = pipe.open();
    const std::string lines =
        "step=1 snapshot=1 snapshot_ms=12\nstep=2 snapshot=2 snapshot_ms=30\nstep=3\n\nword\n";
    ASSERT_EQ(::write(end.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    ASSERT_TRUE(run_until(loop, [&] { return !reports.empty(); }));
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].step, 3);
    EXPECT_EQ(reports[0].first_step, 1) << "a training that begins again is known by it";
    EXPECT_EQ(reports[0].snapshot, 2);
    EXPECT_EQ(reports[0].snapshot_took, std::chrono::milliseconds{30});
    EXPECT_EQ(reports[0].saving, std::chrono::milliseconds{42}) << "but no time is lost";
}

// The first value that is not a number is told with its step, and what follows is not lost.
TEST(ProgressPipe, TellsTheFirstValueThatIsNotANumberWithItsStep) {
    asio::io_context loop{1};
    std::vector<ProgressReport> reports;
    ProgressPipe pipe(loop, std::make_shared<TurnBudget>(loop),
                      [&](const ProgressReport& report) { reports.push_back(report); });
    const UniqueFd end = pipe.open();
    const std::string lines = "step=1 loss=2\nstep=2 loss=nan\nstep=3 loss=inf\nstep=4 loss=nan\n";
    ASSERT_EQ(::write(end.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    ASSERT_TRUE(run_until(loop, [&] { return !reports.empty(); }));
    ASSERT_EQ(reports.size(), 2u);
    EXPECT_EQ(reports[0].step, 2);
    EXPECT_EQ(reports[0].not_finite, "loss=nan");
    EXPECT_EQ(reports[1].step, 4);
}

// Its line has no step, so it has none, however the lines are read; those before are told first.
TEST(ProgressPipe, TellsAValueWithoutAStepAfterTheStepsBeforeIt) {
    asio::io_context loop{1};
    std::vector<ProgressReport> reports;
    ProgressPipe pipe(loop, std::make_shared<TurnBudget>(loop),
                      [&](const ProgressReport& report) { reports.push_back(report); });
    const UniqueFd end = pipe.open();
    const std::string lines = "step=1\nstep=2\ngradient.w1=nan\nstep=3\n";
    ASSERT_EQ(::write(end.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    ASSERT_TRUE(run_until(loop, [&] { return reports.size() == 3; }));
    EXPECT_EQ(reports[0].step, 2);
    EXPECT_EQ(reports[0].not_finite, "");
    EXPECT_EQ(reports[1].step, -1);
    EXPECT_EQ(reports[1].not_finite, "gradient.w1=nan");
    EXPECT_EQ(reports[2].step, 3);
}

// Where the worker says in which call it is comes on the same pipe, and is no progress.
TEST(ProgressPipe, TheAddressOfCallsIsNoReport) {
    asio::io_context loop{1};
    std::vector<ProgressReport> reports;
    ProgressPipe pipe(loop, std::make_shared<TurnBudget>(loop),
                      [&](const ProgressReport& report) { reports.push_back(report); });
    const UniqueFd end = pipe.open();
    const std::string lines = "ddprun_calls=140234 pid=77\n";
    ASSERT_EQ(::write(end.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    ASSERT_TRUE(run_until(loop, [&] { return pipe.calls_at(77) != 0; }));
    EXPECT_EQ(pipe.calls_at(77), 140234u);
    EXPECT_EQ(pipe.calls_at(78), 0u) << "that is in another process";
    EXPECT_TRUE(reports.empty());
    const std::string own = "step=3 calls=5\n";
    ASSERT_EQ(::write(end.get(), own.data(), own.size()), static_cast<ssize_t>(own.size()));
    ASSERT_TRUE(run_until(loop, [&] { return !reports.empty(); })) << "a number of the program";
    EXPECT_EQ(pipe.calls_at(77), 140234u);
}

}  // namespace
}  // namespace ddprun::agent
