// Passes the terminal's foreground and its stop signals on between ddprun and its worker.
#include "keeper/terminal.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "base/system/small_file.h"
#include "keeper/killing/descendants.h"

namespace ddprun::agent {
namespace {

// A background process that changes the terminal gets SIGTTOU, which would stop it. Blocking the
// signal allows the call (tcsetpgrp(3)).
template <class Call>
void from_background(const Call& call) {
    sigset_t stop, old;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &stop, &old);
    call();
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void bring_to_front(pid_t group) {
    from_background([group] { ::tcsetpgrp(STDIN_FILENO, group); });
}

std::optional<termios> usual_modes;

constexpr dev_t kDevTty = 5 << 8;  // /dev/tty: of whoever opens it

bool is_our_terminal(const std::string& path) {
    struct stat ours {};
    struct stat its {};
    return ::fstat(STDIN_FILENO, &ours) == 0 && ::stat(path.c_str(), &its) == 0 &&
           S_ISCHR(its.st_mode) && (its.st_rdev == ours.st_rdev || its.st_rdev == kDevTty);
}

bool waits_for_any(long call) {
#ifdef SYS_poll  // newer architectures lack the older calls
    if (call == SYS_select || call == SYS_poll || call == SYS_epoll_wait) return true;
#endif
    return call == SYS_pselect6 || call == SYS_ppoll || call == SYS_epoll_pwait;
}

// Editors of lines switch the line mode off while they wait for keys in select(). Other threads
// wait so for other things.
bool thread_reads(pid_t process, const std::string& thread, bool edits) {
    const std::string folder = "/proc/" + std::to_string(process);
    const std::string now = read_small_file(folder + "/task/" + thread + "/syscall");
    long call = -1;
    unsigned long fd = 0;
    if (now.empty()) return ::kill(process, 0) == 0;                         // not shown
    if (std::sscanf(now.c_str(), "%ld %lx", &call, &fd) != 2) return false;  // it runs
    if (call == SYS_read || call == SYS_readv)
        return is_our_terminal(folder + "/fd/" + std::to_string(fd));
    return edits && thread == std::to_string(process) && waits_for_any(call);
}

bool process_reads(pid_t process, bool edits) {
    DIR* const tasks = ::opendir(("/proc/" + std::to_string(process) + "/task").c_str());
    if (tasks == nullptr) return false;
    bool reads = false;
    while (const dirent* task = reads ? nullptr : ::readdir(tasks))
        reads = task->d_name[0] != '.' && thread_reads(process, task->d_name, edits);
    ::closedir(tasks);
    return reads;
}

}  // namespace

bool holds_terminal() { return ::tcgetpgrp(STDIN_FILENO) == ::getpgrp(); }

void take_terminal_back(pid_t worker) {
    if (::tcgetpgrp(STDIN_FILENO) == worker) bring_to_front(::getpgrp());
}

void stop_with(pid_t worker, int signal) {
    // A worker that reads or writes the terminal from the background is stopped by SIGTTIN or
    // SIGTTOU. If ddprun is in the foreground, because the user typed `fg`, the worker simply gets
    // the terminal.
    const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    // Ctrl-Z: stops ddprun's whole process group, which the shell knows as the job. kill() returns
    // when the shell continues the job.
    if (!wants_terminal || !holds_terminal()) ::kill(0, SIGTSTP);
    if (holds_terminal()) bring_to_front(worker);
    ::kill(-worker, SIGCONT);
}

void give_terminal(pid_t worker) {
    bring_to_front(worker);
    ::kill(-worker, SIGCONT);
}

bool is_in_front(pid_t worker) { return ::tcgetpgrp(STDIN_FILENO) == worker; }

TerminalUse use_of_terminal(pid_t worker, bool edits) {
    termios now{};
    const bool by_keys = ::tcgetattr(STDIN_FILENO, &now) == 0 && (now.c_lflag & ICANON) == 0;
    edits |= by_keys;
    TerminalUse use{process_reads(worker, edits), (now.c_lflag & ECHO) != 0 && !by_keys};
    for (const pid_t process : find_descendants(worker))
        if (!use.reads && ::getpgid(process) == worker) use.reads = process_reads(process, edits);
    return use;
}

void keep_terminal_modes() {
    termios now{};
    if (!usual_modes && ::tcgetattr(STDIN_FILENO, &now) == 0) usual_modes = now;
}

bool has_usual_modes() {
    termios now{};
    return !usual_modes || ::tcgetattr(STDIN_FILENO, &now) != 0 ||
           now.c_lflag == usual_modes->c_lflag;
}

void restore_terminal_modes() {
    if (has_usual_modes()) return;
    from_background([] { ::tcsetattr(STDIN_FILENO, TCSANOW, &*usual_modes); });
}

}  // namespace ddprun::agent
