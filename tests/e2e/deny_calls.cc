// Runs a program under a seccomp filter that denies some system calls, as sandboxes, old kernels
// and container runtimes do. With `block` all signals are blocked as well. `linux-3.10` denies what
// is newer than this kernel: all calls that it has not, and open() without a name (O_TMPFILE). But
// getrandom() stays: OpenSSL looks at the kernel's version before it does without.
//
//   deny_calls ENOSYS|EPERM|none CALL,CALL,…|linux-3.10 [block] PROGRAM [ARGUMENT…]
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

namespace {

const std::map<std::string, long> kCalls{{"clone3", SYS_clone3},
                                         {"close_range", SYS_close_range},
                                         {"eventfd2", SYS_eventfd2},
                                         {"flock", SYS_flock},
                                         {"getrandom", SYS_getrandom},
                                         {"memfd_create", SYS_memfd_create},
                                         {"mkfifo", SYS_mknodat},
                                         {"pidfd_open", SYS_pidfd_open},
                                         {"pidfd_send_signal", SYS_pidfd_send_signal},
                                         {"prctl", SYS_prctl},
                                         {"prlimit64", SYS_prlimit64},
                                         {"mlock2", SYS_mlock2},
                                         {"process_vm_readv", SYS_process_vm_readv},
                                         {"sched_setaffinity", SYS_sched_setaffinity},
                                         {"setsid", SYS_setsid},
                                         {"signalfd4", SYS_signalfd4},
                                         {"socket", SYS_socket},
                                         {"socketpair", SYS_socketpair},
                                         {"statx", SYS_statx},
                                         {"timerfd_create", SYS_timerfd_create}};

bool install(std::vector<sock_filter> filter) {
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The numbers of x86-64 grow with the age of the kernel; the first one after Linux 3.10 is that of
// sched_setattr() (3.14). A kernel without O_TMPFILE takes it for an attempt to open a folder.
bool deny_what_is_newer() {
#ifdef __x86_64__
    constexpr unsigned kUnnamed = O_TMPFILE & ~O_DIRECTORY;
    constexpr unsigned kLow = offsetof(seccomp_data, args[2]);
    return install({BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 6, 0),
                    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_sched_setattr, 0, 1),
                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
                    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kLow),
                    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kUnnamed, 0, 1),
                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EISDIR)});
#else
    return false;
#endif
}

bool deny(const std::string& names, int error) {
    if (names == "linux-3.10") return deny_what_is_newer();
    std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
    for (std::size_t at = 0; at <= names.size();) {
        const std::size_t end = std::min(names.find(',', at), names.size());
        const auto call = kCalls.find(names.substr(at, end - at));
        if (call == kCalls.end()) return false;
        filter.push_back(
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call->second), 0, 1));
        filter.push_back(
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
        at = end + 1;
    }
    return install(std::move(filter));
}

}  // namespace

int main(int argc, char** argv) {
    int program = 3;
    if (argc <= program) return 97;
    const std::string how = argv[1];
    if (std::strcmp(argv[program], "block") == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, nullptr);
        ++program;
    }
    if (how != "none" && !deny(argv[2], how == "EPERM" ? EPERM : ENOSYS)) return 98;
    execvp(argv[program], argv + program);
    std::perror(argv[program]);
    return 99;
}
