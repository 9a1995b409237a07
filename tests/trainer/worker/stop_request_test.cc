// The request to stop, as a file and as a signal. Each test runs in a fork, since the handler for
// SIGTERM stays for the rest of a process.
#include "trainer/worker/stop_request.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <thread>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Asks until the answer is yes, or 10 s have passed: the file is looked for at most ten times a
// second, so the first questions after it was made may still be answered with no.
bool becomes_asked(StopRequest& request) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (!request.asked() && Clock::now() < deadline)
        std::this_thread::sleep_for(milliseconds(5));
    return request.asked();
}

// The request stays once it was seen, even if the file is gone again. Otherwise ranks that look at
// different times would not agree.
TEST(StopRequest, SeesTheFile) {
    test::TemporaryFolder folder;
    const auto file = folder.path() / "stop.json";
    auto ends = test::run_ranks(1, [&](const Context&) {
        StopRequest request(file);
        if (request.asked()) return 1;
        test::write_all(file, "{}");
        if (!becomes_asked(request)) return 2;
        std::filesystem::remove(file);
        return request.asked() ? 0 : 3;
    });
    EXPECT_EQ(ends, test::Ends({0}));
}

// SIGTERM is a request and does not end the process. Under a launcher other than ddprun there is no
// file, only the signal.
TEST(StopRequest, HearsTheSignal) {
    auto ends = test::run_ranks(1, [](const Context&) {
        unsetenv("DDPRUN_STOP_FILE");
        auto request = StopRequest::from_environment();
        if (request.asked()) return 1;
        (void)raise(SIGTERM);
        return request.asked() ? 0 : 2;
    });
    EXPECT_EQ(ends, test::Ends({0}));
}

}  // namespace
}  // namespace ddprun::trainer
