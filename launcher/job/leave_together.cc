// Says "ready" by closing our half of the connection, then waits for the end of the leader's half.
#include "launcher/job/leave_together.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/system/boot_clock.h"

namespace ddprun::launcher {
namespace {

// Longer than the user's program (30 s) and the output of the leader may take.
constexpr Duration kLimit = std::chrono::seconds{60};

}  // namespace

// The loop has ended, so plain poll() and recv() do. The boot clock goes on while the host sleeps
// and cannot be set.
void leave_with(const UniqueFd& leader) {
    ::shutdown(leader.get(), SHUT_WR);
    const Time give_up = boot_now() + kLimit;
    for (char rest[4096]; true;) {
        const Duration left = give_up - boot_now();
        if (left <= Duration::zero()) return;
        pollfd wait{leader.get(), POLLIN, 0};
        ::poll(&wait, 1, static_cast<int>(left / std::chrono::milliseconds{1}) + 1);
        // What the leader still sends is of no interest any more, but must be read for its end to
        // be seen.
        const ssize_t got = ::recv(leader.get(), rest, sizeof rest, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    }
}

}  // namespace ddprun::launcher
