// How a process ends that has no memory or threads left, and that a bug still looks like one.
#include "base/system/out_of_resources.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

using namespace ddprun;

namespace {

// In a process of its own, which ends.
template <class Thrown>
void end_by(Thrown thrown) {
    end_without_resources("ddprun", 126);
    std::thread([thrown] { throw thrown; }).join();
}

}  // namespace

TEST(OutOfResourcesDeathTest, IsSaidInALine) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(end_by(std::bad_alloc()), testing::ExitedWithCode(126),
                "^ddprun: no memory left \\(ulimit -v, the memory limit of the cgroup\\)\n$");
    EXPECT_EXIT(end_by(std::system_error(EAGAIN, std::generic_category())),
                testing::ExitedWithCode(126), "^ddprun: no thread to be had .*\n$");
}

// A core file and a signal, with which somebody can look for the mistake.
TEST(OutOfResourcesDeathTest, ABugStillAborts) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(end_by(std::logic_error("a mistake")), testing::KilledBySignal(SIGABRT),
                "ddprun: unexpected: a mistake");
    EXPECT_EXIT(end_by(std::system_error(EBADF, std::generic_category())),
                testing::KilledBySignal(SIGABRT), "ddprun: unexpected: Bad file descriptor");
}
