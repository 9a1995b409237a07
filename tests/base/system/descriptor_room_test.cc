// The limit of open descriptors and the size of the descriptor table, as the kernel shows them in
// /proc. Real processes: each look happens in a fresh child.
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

// Runs `look` in a child. The table of a process never shrinks, so a second look in the same
// process would prove nothing.
bool holds_in_a_child(const std::function<bool()>& look) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(look() ? 0 : 1);
    int status = 1;
    ::waitpid(child, &status, 0);
    return status == 0;
}

// The table must have its final size before the first thread starts. If it grew later, all starts
// and answers would wait 8 to 20 ms for the kernel each time. The call opens a descriptor with a
// high number to make the table grow, and must close it again.
TEST(DescriptorRoom, ReachesAsFarAsTheLimitAndLeavesNothingOpen) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const std::uint64_t reach = std::min<rlim_t>(limit.rlim_max, kDescriptorRoom);
    // `table_size() < reach` before the call makes sure that the call has something to do.
    EXPECT_TRUE(holds_in_a_child([&] {
        const auto open = open_descriptors();
        return table_size() < reach && make_room_for_descriptors() == limit.rlim_cur &&
               table_size() >= reach && open_descriptors() == open;
    }));
}

// Some sites set a low hard limit. The call then takes what it may, and returns the old soft limit
// (50), which the workers get back.
TEST(DescriptorRoom, ALowLimitIsRespected) {
    EXPECT_TRUE(holds_in_a_child([] {
        const rlimit low{50, 100};  // soft, hard
        if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return false;
        const auto open = open_descriptors();
        rlimit after{};
        return make_room_for_descriptors() == 50U && ::getrlimit(RLIMIT_NOFILE, &after) == 0 &&
               after.rlim_cur == 100 && open_descriptors() == open;
    }));
}

}  // namespace
}  // namespace ddprun
