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
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
    // The table reaches as far as its highest number ever did.
    const int any = ::open("/", O_PATH | O_CLOEXEC);
    const auto highest = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kDescriptorRoom)) - 1;
    const int high = ::fcntl(any, F_DUPFD_CLOEXEC, highest);
    for (const int one : {high, any})
        if (one >= 0) ::close(one);
    return before;
}

}  // namespace ddprun
