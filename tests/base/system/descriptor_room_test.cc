// Room for descriptors, as the kernel shows it, in a process that has just begun.
#include "base/system/descriptor_room.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace ddprun {
namespace {

// How many descriptors the kernel's table holds before it must grow.
std::uint64_t table_size() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("FDSize:")) return std::stoull(line.substr(7));
    return 0;
}

std::ptrdiff_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
}

// The table of a process never shrinks: so each look has one of its own.
bool holds_in_a_child(const std::function<bool()>& look) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(look() ? 0 : 1);
    int status = 1;
    ::waitpid(child, &status, 0);
    return status == 0;
}

TEST(DescriptorRoom, ReachesAsFarAsTheLimitAndLeavesNothingOpen) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const std::uint64_t reach = std::min<rlim_t>(limit.rlim_max, kDescriptorRoom);
    EXPECT_TRUE(holds_in_a_child([&] {
        const auto open = open_descriptors();
        return table_size() < reach && make_room_for_descriptors() == limit.rlim_cur &&
               table_size() >= reach && open_descriptors() == open;
    }));
}

TEST(DescriptorRoom, ALowLimitIsRespected) {
    EXPECT_TRUE(holds_in_a_child([] {
        const rlimit low{50, 100};
        if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return false;
        const auto open = open_descriptors();
        rlimit after{};
        return make_room_for_descriptors() == 50U && ::getrlimit(RLIMIT_NOFILE, &after) == 0 &&
               after.rlim_cur == 100 && open_descriptors() == open;
    }));
}

}  // namespace
}  // namespace ddprun
