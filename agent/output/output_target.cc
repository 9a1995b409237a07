// Writes to a descriptor without blocking, in the way that its kind allows.
#include "agent/output/output_target.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "base/system/write_all.h"

namespace ddprun::agent {
namespace {

// Opening /proc/self/fd/N makes a new open file description for the same pipe or terminal. Its
// O_NONBLOCK is ours alone. O_NOCTTY: the terminal must not become our controlling terminal.
UniqueFd reopen(int fd) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return UniqueFd(::open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_APPEND | O_CLOEXEC));
}

}  // namespace

// Chooses the way of writing by the kind of file. If opening anew fails (for example without
// permission on the terminal), `shared` remains.
OutputTarget::OutputTarget(int fd) : fd_(::fcntl(fd, F_DUPFD_CLOEXEC, 3)), kind_(Kind::shared) {
    struct stat what {};
    if (::fstat(fd, &what) != 0) return;
    if (S_ISSOCK(what.st_mode)) {
        kind_ = Kind::socket;
        return;
    }
    is_terminal_ = !S_ISFIFO(what.st_mode) && ::isatty(fd) == 1;
    if (!S_ISFIFO(what.st_mode) && !is_terminal_) {
        kind_ = Kind::file;
    } else if (UniqueFd own = reopen(fd)) {
        fd_ = std::move(own);
        kind_ = Kind::own;
    }
}

OutputTarget::OutputTarget(UniqueFd file) : fd_(std::move(file)), kind_(Kind::file) {}

bool OutputTarget::wait_for_room(Duration limit) const {
    pollfd room{number(), POLLOUT, 0};
    return ::poll(&room, 1, static_cast<int>(limit / std::chrono::milliseconds{1})) > 0;
}

// MSG_NOSIGNAL: a closed socket gives EPIPE. For `shared`, at most PIPE_BUF bytes are written: when
// poll says that a pipe has room, a write of this size does not block.
ssize_t OutputTarget::write_some(const char* bytes, std::size_t size) {
    if (kind_ == Kind::socket) return ::send(number(), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (kind_ == Kind::shared) {
        if (!wait_for_room(Duration::zero())) {
            errno = EAGAIN;
            return -1;
        }
        size = std::min<std::size_t>(size, PIPE_BUF);
    }
    return ::write(number(), bytes, size);
}

int OutputTarget::write_all(const std::vector<std::string>& pieces,
                            const FileThread::Progress& progress) {
    const BetweenWrites between{
        // Another process may have made a device non-blocking.
        [this] { return wait_for_room(std::chrono::seconds{1}), true; }, [&] { ++*progress; }};
    for (const std::string& piece : pieces)
        if (const int problem = ddprun::write_all(number(), piece, between)) return problem;
    return 0;
}

// Device and inode number identify a file, a pipe or a terminal.
bool same_target(int one, int other) {
    struct stat a {
    }, b{};
    return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

}  // namespace ddprun::agent
