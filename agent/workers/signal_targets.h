// Which processes of a worker get a signal that asks for something: to stop, to save, to report.
// Pure; the shell reads /proc (signal_look.h).
//
// A signal for the whole process group also reaches the helpers that a rank has started. The
// workers of a PyTorch DataLoader die of it, and the rank, whose handler is right, fails before it
// has saved. Therefore a process that survives the signal gets it alone: it has a handler, blocks
// the signal (sigwait, signalfd) or ignores it.
//
// In a wrapper the programs that it runs are asked the same. Wrappers are shells, and processes
// that only wait for their one child if this child runs another executable. A shell forwards no
// signal, and runs its traps after its program has ended. A process of another kind that has a
// handler forwards the signal itself, so it is no wrapper here; time(1) ignores some signals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

struct SeenProcess {
    bool handles = false;     // it has a handler for the signal in question, or blocks it
    bool ignores = false;     // it ignores this signal
    bool only_waits = false;  // it has one thread, which waits until a child ends
    std::string program;      // path of its executable; empty: it may not be read
    std::vector<std::int64_t> children;

    bool lives_on() const { return handles || ignores; }
};

// Returns nothing if the process has ended.
using LookAt = std::function<std::optional<SeenProcess>(std::int64_t pid)>;

struct SignalTargets {
    std::vector<std::int64_t> processes;  // that live on after the signal
    // Whether one of them is more than a wrapper. Only then is a stop sent to these processes
    // alone: a wrapper ends no earlier than what it waits for.
    bool has_program = false;
    bool has_ended = false;  // the worker itself
};

SignalTargets signal_targets(std::int64_t worker, const LookAt& look);

bool is_shell(std::string_view program);

// One thread as /proc/PID/status or /proc/PID/task/TID/status describes it.
struct ThreadStatus {
    char state = 'X';  // of proc(5)
    int threads = 0;   // of its process
    std::uint64_t blocked = 0, ignored = 0, caught = 0;

    bool has_ended() const { return state == 'X' || state == 'Z'; }
    bool blocks(int signal) const { return has(blocked, signal); }
    bool catches(int signal) const { return has(caught, signal); }
    bool ignores(int signal) const { return has(ignored, signal); }

  private:
    static bool has(std::uint64_t set, int signal) { return (set >> (signal - 1) & 1U) != 0; }
};

// A text without the fields counts as an ended process.
ThreadStatus parse_thread_status(std::string_view text);

}  // namespace ddprun::agent
