// Sends events to a worker.
#include "agent/workers/event_socket.h"

#include <sys/socket.h>

#include <cerrno>

namespace ddprun::agent {

UniqueFd EventSocket::open() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
    ours_.reset(ends[0]);
    return UniqueFd(ends[1]);
}

// The kernel takes a text that is shorter than half of its buffer in one piece. Where it does not,
// the rest of a line would come too late to be read as one.
void EventSocket::push(std::string_view line) {
    if (!ours_) return;
    lines_.push(line, [this](std::string_view text) {
        const ssize_t sent =
            ::send(ours_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent == static_cast<ssize_t>(text.size())) return EventLines::Taken::all;
        const bool full = sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM);
        return full ? EventLines::Taken::no_room : EventLines::Taken::closed;
    });
    if (lines_.closed()) ours_.reset();
}

}  // namespace ddprun::agent
