// Turns a fresh process into a keeper: signals, session, name, descriptors.
#include "keeper/process/keeper_setup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace ddprun::agent::keeper {
namespace {

// Closes everything that was inherited from ddprun. Otherwise, for example, the reader of a pipe
// would not see that ddprun is gone.
bool close_others(int socket) {
    if (socket != kSocket && ::dup3(socket, kSocket, O_CLOEXEC) < 0) return false;
    ::fcntl(kSocket, F_SETFD, FD_CLOEXEC);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);
    ::dup2(null, STDOUT_FILENO);
    // If standard error were closed, the next descriptor would get number 2, and messages would go
    // there.
    if (::fcntl(STDERR_FILENO, F_GETFD) < 0) ::dup2(null, STDERR_FILENO);
    if (::syscall(SYS_close_range, static_cast<unsigned>(kSocket + 1), ~0U, 0U) == 0) return true;
    // close_range() exists since Linux 5.9. Before it, the list comes from /proc. The numbers are
    // collected first, because closing descriptors while reading the folder changes it.
    DIR* dir = ::opendir("/proc/self/fd");
    if (dir == nullptr) return false;
    std::vector<int> open;
    while (const dirent* entry = ::readdir(dir)) open.push_back(std::atoi(entry->d_name));
    ::closedir(dir);
    for (const int fd : open)
        if (fd > kSocket) ::close(fd);
    return true;
}

// A signal to the process group must not end the keeper. So every signal is blocked, except those
// that the CPU raises for our own mistakes. Blocked and not ignored: workers inherit ignored
// signals through exec, while blocked ones only need to be unblocked. Handlers of ddprun are reset
// for the same reason.
void block_signals() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        ::sigdelset(&blocked, fault);
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    for (int signal = 1; signal <= SIGRTMAX; ++signal) ::sigaction(signal, &standard, nullptr);
}

}  // namespace

void rename_command_line(std::span<char> command_line) {
    const std::string_view name = kName;
    for (std::size_t i = 0; i < command_line.size(); ++i)
        command_line[i] = i < name.size() ? name[i] : '\0';
}

// With a worker at a terminal the keeper stays in ddprun's session, as a process group of its own.
bool become_keeper(int socket, bool own_session) {
    block_signals();
    if (own_session)
        ::setsid();
    else
        ::setpgid(0, 0);
    ::prctl(PR_SET_NAME, kName);
    // EINVAL: an emulator of Linux, as in start_by_fork().
    return (::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 || errno == EINVAL) && close_others(socket);
}

}  // namespace ddprun::agent::keeper
