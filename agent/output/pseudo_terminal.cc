// Opens pseudo terminals.
#include "agent/output/pseudo_terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace ddprun::agent {
namespace {

winsize in_kernel(WindowSize size) {
    return {.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
}

Error cannot(const char* what) {
    return Error{ErrorCode::internal,
                 std::string("cannot ") + what +
                     " a pseudo terminal for a worker's output: " + std::strerror(errno)};
}

// TIOCGPTPEER (Linux 4.13) needs no /dev/pts of this mount namespace.
int open_peer(int ours) {
    const int flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
    if (const int fd = ::ioctl(ours, TIOCGPTPEER, flags); fd >= 0) return fd;
    int number = 0;
    if (::ioctl(ours, TIOCGPTN, &number) != 0) return -1;
    char path[32];
    std::snprintf(path, sizeof path, "/dev/pts/%d", number);
    return ::open(path, flags);
}

}  // namespace

std::optional<WindowSize> window_of(int fd) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return std::nullopt;
    return WindowSize{.rows = size.ws_row, .columns = size.ws_col};
}

Result<PseudoTerminal> open_pseudo_terminal(WindowSize size) {
    PseudoTerminal made;
    made.ours.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    int unlock = 0;
    if (!made.ours || ::ioctl(made.ours.get(), TIOCSPTLCK, &unlock) != 0) return cannot("open");
    made.workers.reset(open_peer(made.ours.get()));
    if (!made.workers) return cannot("open the worker's end of");
    termios plain{};
    if (::tcgetattr(made.workers.get(), &plain) != 0) return cannot("set up");
    plain.c_iflag &= ~static_cast<tcflag_t>(IXON | IXOFF | IXANY);
    plain.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    plain.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
    if (::tcsetattr(made.workers.get(), TCSANOW, &plain) != 0) return cannot("set up");
    resize(made.workers.get(), size);
    return made;
}

void resize(int terminal, WindowSize size) {
    const winsize wanted = in_kernel(size);
    ::ioctl(terminal, TIOCSWINSZ, &wanted);
}

}  // namespace ddprun::agent
