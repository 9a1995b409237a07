// Decodes wait statuses and writes the sentence about a worker's end.
#include "agent/death/exit_report.h"

#include <csignal>
#include <iterator>

namespace ddprun::agent {
namespace {

// Names by signal number, as on x86-64 and AArch64.
constexpr const char* kNames[] = {
    nullptr,   "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
    "SIGFPE",  "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
    nullptr,   "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
    "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};

// What usually causes this signal, and where to look. Empty when there is nothing useful to say.
std::string signal_hint(int signal, const ExitSubject& who) {
    const bool slurm = !who.slurm_job_id.empty();
    switch (signal) {
        case SIGKILL:
            return "often out of memory: see dmesg" +
                   (slurm ? " or sacct -j " + who.slurm_job_id : "");
        case SIGSEGV:
            return "invalid memory access: see its last lines, or run it in a debugger";
        case SIGBUS:
            return "often /dev/shm or the disk is full, or a file on the network was cut short: "
                   "see df";
        case SIGABRT:
            return "it aborted (assert or uncaught exception): see its last lines";
        case SIGFPE:
            return "an integer division by zero or overflow";
        case SIGILL:
            return "often a binary built for another CPU than this node's";
        case SIGPIPE:
            return "it wrote to a pipe or socket that nobody reads";
        case SIGXCPU:
            return "its limit of CPU time is used up: see ulimit -t";
        case SIGXFSZ:
            return "it tried to exceed the file size limit: see ulimit -f";
        case SIGSYS:
            return "a system call was forbidden (seccomp)";
        case SIGTERM:
            return slurm ? "something sent it SIGTERM: see sacct -j " + who.slurm_job_id
                         : "something sent it SIGTERM";
        default:
            return {};
    }
}

// What an exit code usually means by convention. Empty for most codes, because only the program
// knows.
std::string code_hint(int code) {
    switch (code) {
        case 2:
            return "often wrong arguments: its last lines say which";
        case 126:
            return "shells use this code when a program cannot be executed: check its permissions";
        case 127:
            return "shells use this code when a program or library is not found: check PATH and "
                   "ldd";
        default:
            break;
    }
    // A shell reports a program that was ended by signal n as 128 + n. Linux has 64 signals.
    if (code <= 128 || code > 128 + 64) return {};
    const int signal = code - 128;
    std::string hint = "shells use this code when " + signal_name(signal) + " ended the program";
    if (signal == SIGKILL) hint += ", often out of memory: see dmesg";
    return hint;
}

}  // namespace

// Decodes by hand what the macros of waitpid(2) decode, because a pure file may not include their
// header. The encoding is part of Linux's ABI: exit code in bits 8 to 15, signal in bits 0 to 6,
// core dump in bit 7.
ExitStatus from_wait_status(int wait_status) {
    ExitStatus status;
    status.signal = wait_status & 0x7f;
    if (status.signal == 0)
        status.code = (wait_status >> 8) & 0xff;
    else
        status.core = (wait_status & 0x80) != 0;
    return status;
}

// Real-time signals (from 32 on) have no fixed names.
std::string signal_name(int signal) {
    if (signal > 0 && signal < static_cast<int>(std::size(kNames)) && kNames[signal] != nullptr)
        return kNames[signal];
    return "signal " + std::to_string(signal);
}

// A guess is added only if ddprun did not stop the worker itself. A known cause replaces the guess.
std::string exit_sentence(const ExitStatus& status, const ExitSubject& who) {
    std::string text =
        "rank " + std::to_string(who.rank) + " (local " + std::to_string(who.local_rank);
    if (!who.node.empty()) text += " on " + who.node;
    text += ")";
    std::string hint;
    if (status.signal != 0) {
        text += " was killed by signal " + std::to_string(status.signal);
        if (signal_name(status.signal).starts_with("SIG"))
            text += " (" + signal_name(status.signal) + ")";
        if (!who.stopped_by_us) hint = signal_hint(status.signal, who);
    } else {
        text += " exited with " + std::to_string(status.code);
        if (!who.stopped_by_us) hint = code_hint(status.code);
    }
    text += " after " + to_text(who.ran);
    if (who.stopped_by_us) text += ", while ddprun was stopping it";
    if (status.core) text += ", core dumped";
    if (!who.known_cause.empty() && !who.stopped_by_us) hint = who.known_cause;
    if (!hint.empty()) text += "; " + hint;
    return text;
}

}  // namespace ddprun::agent
