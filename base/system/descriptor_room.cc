// Raises the limit of open descriptors and enlarges the kernel's descriptor table early.
#include "base/system/descriptor_room.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace ddprun {

std::optional<std::uint64_t> make_room_for_descriptors() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
    const std::uint64_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    // If the limit cannot be raised, ddprun works with the old one.
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
    // The table grows to the highest number that was ever open, and never shrinks. So one
    // descriptor with a high number is opened and closed again. "/" with O_PATH can always be
    // opened and touches no device.
    const int any = ::open("/", O_PATH | O_CLOEXEC);
    const auto highest = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kDescriptorRoom)) - 1;
    const int high = ::fcntl(any, F_DUPFD_CLOEXEC, highest);
    for (const int one : {high, any})
        if (one >= 0) ::close(one);
    return before;
}

}  // namespace ddprun
