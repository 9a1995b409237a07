// Looks through wrappers for the processes that live on after a signal.
#include "agent/workers/signal_targets.h"

#include <algorithm>
#include <charconv>

namespace ddprun::agent {
namespace {

// Levels of wrappers. Real layouts have two or three.
constexpr int kDeepest = 8;

constexpr std::string_view kShells[] = {"ash",  "bash", "busybox", "csh",   "dash",
                                        "fish", "ksh",  "ksh93",   "mksh",  "sh",
                                        "tcsh", "zsh",  "yash",    "rbash", "lksh"};

std::string_view name_of(std::string_view program) {
    program = program.substr(program.rfind('/') + 1);
    return program.substr(0, program.find(' '));  // "bash (deleted)", after an update
}

// Whether a process that is no shell does nothing but run another program.
bool only_runs_another(const SeenProcess& seen, const LookAt& look) {
    if (seen.handles || !seen.only_waits || seen.program.empty() || seen.children.size() != 1)
        return false;
    const auto child = look(seen.children.front());
    return child && !child->program.empty() && child->program != seen.program;
}

void search(std::int64_t pid, const SeenProcess& seen, const LookAt& look, int depth,
            SignalTargets& found) {
    const bool wraps = is_shell(seen.program) || only_runs_another(seen, look);
    if (depth > 0 && wraps)
        for (const std::int64_t child : seen.children)
            if (const auto below = look(child)) search(child, *below, look, depth - 1, found);
    if (!seen.lives_on()) return;
    found.processes.push_back(pid);
    found.has_program |= !wraps;
}

// The number behind "NAME:\t" at the begin of a line.
template <class Number>
void read_field(std::string_view text, std::string_view name, Number& number, int base) {
    const std::size_t at = text.find("\n" + std::string(name) + ":\t");
    if (at == text.npos) return;
    const std::string_view value = text.substr(at + name.size() + 3);
    std::from_chars(value.data(), value.data() + value.size(), number, base);
}

}  // namespace

bool is_shell(std::string_view program) {
    return std::ranges::find(kShells, name_of(program)) != std::end(kShells);
}

SignalTargets signal_targets(std::int64_t worker, const LookAt& look) {
    SignalTargets found;
    const auto seen = look(worker);
    found.has_ended = !seen;
    if (seen) search(worker, *seen, look, kDeepest, found);
    return found;
}

ThreadStatus parse_thread_status(std::string_view text) {
    constexpr std::string_view kState = "\nState:\t";
    ThreadStatus status;
    if (const std::size_t at = text.find(kState);
        at != text.npos && at + kState.size() < text.size())
        status.state = text[at + kState.size()];
    read_field(text, "Threads", status.threads, 10);
    read_field(text, "SigBlk", status.blocked, 16);
    read_field(text, "SigIgn", status.ignored, 16);
    read_field(text, "SigCgt", status.caught, 16);
    return status;
}

}  // namespace ddprun::agent
