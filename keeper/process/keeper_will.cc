// Carries out the keeper's last duties.
#include "keeper/process/keeper_will.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/system/boot_clock.h"
#include "base/system/remove_folder.h"

namespace ddprun::agent::keeper {
namespace {

// For a link whose send buffer is full, because the leader does not read.
constexpr Duration kPatience = std::chrono::seconds{2};

// A request whose payload is missing counts as "nothing prepared".
std::vector<char> payload_of(const Request& request, const std::vector<UniqueFd>& fds) {
    std::vector<char> bytes;
    if (fds.empty() || !read_payload(fds[0].get(), request.payload_bytes, bytes)) bytes.clear();
    return bytes;
}

}  // namespace

// The descriptors come in a fixed order; a bit of `present` says for each whether it is there. The
// payload's descriptor is missing when the frame is empty.
void Will::prepare(const Request& request, std::vector<UniqueFd>& fds) {
    frame_ = payload_of(request, fds);
    std::size_t next = request.payload_bytes > 0 ? 1 : 0;
    const auto take = [&](unsigned bit) {
        const bool there = (request.present >> bit & 1U) != 0 && next < fds.size();
        return there ? std::move(fds[next++]) : UniqueFd{};
    };
    link_ = take(0);
    listener_ = take(1);
}

void Will::set_folder(const Request& request, std::vector<UniqueFd>& fds) {
    const std::vector<char> path = payload_of(request, fds);
    folder_.assign(path.begin(), path.end());
    folder_lock_ = fds.size() > 1 ? std::move(fds[1]) : UniqueFd();
}

void Will::see_sockets() { left_sockets_.see(::getpid()); }

void Will::execute() {
    // First the frame: the leader waits for it. A file system may hang, so the folder comes last.
    write_frame();
    link_.reset();
    listener_.reset();
    if (!folder_.empty()) remove_folder(folder_, folder_lock_.get());
    left_sockets_.remove();
}

// The socket may be non-blocking, so poll() waits for room, up to a limit. After an error there is
// nothing left to try: the lease then tells the others that this node is gone.
void Will::write_frame() {
    const Time give_up = boot_now() + kPatience;
    for (std::size_t at = 0; link_ && at < frame_.size();) {
        const ssize_t n = ::write(link_.get(), frame_.data() + at, frame_.size() - at);
        if (n > 0) {
            at += static_cast<std::size_t>(n);
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        const Duration left = give_up - boot_now();
        if (n == 0 || errno != EAGAIN || left <= Duration::zero()) return;
        pollfd room{link_.get(), POLLOUT, 0};
        ::poll(&room, 1, static_cast<int>(left / std::chrono::milliseconds{1}) + 1);
    }
}

}  // namespace ddprun::agent::keeper
