// Carries out the keeper's last duties.
#include "keeper/process/keeper_will.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/system/boot_clock.h"
#include "base/system/remove_folder.h"
#include "base/system/write_all.h"

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
    folders_.assign(path.empty() ? 0 : 1, std::string(path.begin(), path.end()));
    folder_lock_ = fds.size() > 1 ? std::move(fds[1]) : UniqueFd();
}

void Will::see_sockets() { left_sockets_.see(::getpid()); }

void Will::execute() {
    // First the frame: the leader waits for it. A file system may hang, so folders come last.
    write_frame();
    link_.reset();
    listener_.reset();
    for (const std::string& folder : folders_) remove_folder(folder, folder_lock_.get());
    left_sockets_.remove();
}

// The socket may be non-blocking, so poll() waits for room, up to a limit. After an error there is
// nothing left to try: the lease then tells the others that this node is gone.
void Will::write_frame() {
    const Time give_up = boot_now() + kPatience;
    const auto wait_for_room = [&] {
        const Duration left = give_up - boot_now();
        if (left <= Duration::zero()) return false;
        pollfd room{link_.get(), POLLOUT, 0};
        ::poll(&room, 1, static_cast<int>(left / std::chrono::milliseconds{1}) + 1);
        return true;
    };
    if (link_)
        (void)write_all(link_.get(), {frame_.data(), frame_.size()},
                        {.wait_for_room = wait_for_room});
}

}  // namespace ddprun::agent::keeper
