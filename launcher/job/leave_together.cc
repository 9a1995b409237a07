#include "launcher/job/leave_together.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/system/boot_clock.h"

namespace ddprun::launcher {
namespace {

constexpr Duration kLimit = std::chrono::seconds{60};

}  // namespace

void leave_with(const UniqueFd& leader) {
    ::shutdown(leader.get(), SHUT_WR);
    const Time give_up = boot_now() + kLimit;
    for (char rest[4096]; true;) {
        const Duration left = give_up - boot_now();
        if (left <= Duration::zero()) return;
        pollfd wait{leader.get(), POLLIN, 0};
        ::poll(&wait, 1, static_cast<int>(left / std::chrono::milliseconds{1}) + 1);
        const ssize_t got = ::recv(leader.get(), rest, sizeof rest, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    }
}

}  // namespace ddprun::launcher
