// The pipe of a worker that reports without a pause. `while True: os.write(3, b"\n" * 65536)` in one
// rank once stopped the output, the signals and the Beats of its node, so the lease passed.
#include "agent/workers/progress_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <string>

#include "tests/support/loop.h"

namespace ddprun::agent {
namespace {

// More than any test needs: here a pipe that is always full gives up, so that a failing test ends.
constexpr int kMost = 200'000;

// A pipe that is never empty: for each line that is read, a new one is written.
struct FullPipe {
    explicit FullPipe(asio::io_context& loop)
        : pipe(loop, [this](const ProgressReport&) {
              if (++reports < kMost) refill();
          }) {
        end = pipe.open();
        ::fcntl(end.get(), F_SETFL, O_NONBLOCK);
        while (refill()) {
        }
    }
    bool refill() { return ::write(end.get(), "step=1\n", 7) == 7; }

    int reports = 0;
    ProgressPipe pipe;
    UniqueFd end;
};

// Other work on the loop gets its turn after each read.
TEST(ProgressPipe, LeavesTheLoopToOthers) {
    asio::io_context loop;
    FullPipe full(loop);
    int turns = 0;
    std::function<void()> other = [&] {
        if (++turns < 100) asio::post(loop, other);
    };
    asio::post(loop, other);
    ASSERT_TRUE(run_until(loop, [&] { return turns == 100; }));
    EXPECT_LT(full.reports, kMost / 2);
}

// The worker has exited, and a process that it left behind writes on.
TEST(ProgressPipe, EndsWhoeverWritesOn) {
    asio::io_context loop;
    FullPipe full(loop);
    full.pipe.finish();
    EXPECT_GT(full.reports, 1000) << "what was in the pipe counts";
    EXPECT_LT(full.reports, kMost);
}

}  // namespace
}  // namespace ddprun::agent
