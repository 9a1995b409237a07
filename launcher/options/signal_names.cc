// The table of signals, and how a list of their names is read.
#include "launcher/options/signal_names.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <iterator>

#include "base/command_line/nearest.h"

namespace ddprun::launcher {
namespace {

struct Row {
    std::string_view name;
    int number;
    bool possible;  // a signal that a job can be stopped with; see below
};
// Not possible are SIGKILL and SIGSTOP (no process can catch them), those that ddprun uses itself
// (SIGCHLD, SIGPIPE), and those that report a programming error.
constexpr Row kRows[] = {
    {"SIGTERM", SIGTERM, true},  {"SIGINT", SIGINT, true},       {"SIGHUP", SIGHUP, true},
    {"SIGQUIT", SIGQUIT, true},  {"SIGUSR1", SIGUSR1, true},     {"SIGUSR2", SIGUSR2, true},
    {"SIGALRM", SIGALRM, true},  {"SIGXCPU", SIGXCPU, true},     {"SIGXFSZ", SIGXFSZ, true},
    {"SIGPWR", SIGPWR, true},    {"SIGABRT", SIGABRT, true},     {"SIGIO", SIGIO, true},
    {"SIGPROF", SIGPROF, true},  {"SIGVTALRM", SIGVTALRM, true}, {"SIGTSTP", SIGTSTP, true},
    {"SIGCONT", SIGCONT, true},  {"SIGWINCH", SIGWINCH, true},   {"SIGURG", SIGURG, true},
    {"SIGTTIN", SIGTTIN, true},  {"SIGTTOU", SIGTTOU, true},     {"SIGKILL", SIGKILL, false},
    {"SIGSTOP", SIGSTOP, false}, {"SIGCHLD", SIGCHLD, false},    {"SIGPIPE", SIGPIPE, false},
    {"SIGSEGV", SIGSEGV, false}, {"SIGBUS", SIGBUS, false},      {"SIGFPE", SIGFPE, false},
    {"SIGILL", SIGILL, false},   {"SIGTRAP", SIGTRAP, false},    {"SIGSYS", SIGSYS, false},
};

Result<int> read_name(std::string_view name) {
    const auto row = std::ranges::find(kRows, name, &Row::name);
    if (row != std::end(kRows) && row->possible) return row->number;
    if (row != std::end(kRows))
        return usage_error(std::string(name) + " cannot be handled; leave it out");
    if (name.empty()) return usage_error("a name is missing; give names like SIGTERM,SIGUSR1");
    std::array<std::string_view, std::size(kRows)> names;
    std::ranges::transform(kRows, names.begin(), &Row::name);
    // Names must be spelled exactly. The refusal of "term" still finds SIGTERM.
    std::string whole = name.starts_with("SIG") ? "" : "SIG";
    for (char c : name) whole += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    const std::string_view meant = nearest(whole, names);
    return usage_error(std::string(name) + " is not a signal; " +
                       (meant.empty() ? "give names like SIGTERM,SIGUSR1"
                                      : "did you mean " + std::string(meant) + "?"));
}

}  // namespace

std::vector<int> always_handled() { return {SIGTERM, SIGINT, SIGHUP, SIGQUIT}; }

std::vector<int> passed_on_unless_named() { return {SIGUSR1, SIGUSR2}; }

Result<std::vector<int>> read_signals(std::string_view text) {
    std::vector<int> numbers;
    for (;;) {
        const std::size_t comma = text.find(',');
        std::string_view name = text.substr(0, comma);
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        auto number = read_name(name);
        if (!number) return number.error();
        if (std::ranges::find(numbers, *number) == numbers.end()) numbers.push_back(*number);
        if (comma == std::string_view::npos) return numbers;
        text.remove_prefix(comma + 1);
    }
}

Result<std::vector<int>> read_signals_freely(std::string_view text) {
    std::string whole;
    for (;;) {
        const std::size_t comma = text.find(',');
        const std::string_view name = text.substr(0, comma);
        whole += (name.starts_with("SIG") || name.empty() ? "" : "SIG") + std::string(name);
        if (comma == std::string_view::npos) return read_signals(whole);
        whole += ',';
        text.remove_prefix(comma + 1);
    }
}

Result<int> read_signal(std::string_view text) {
    const auto numbers = read_signals_freely(text);
    if (!numbers) return numbers.error();
    if (numbers->size() != 1) return usage_error("give one signal, such as SIGTERM");
    return numbers->front();
}

}  // namespace ddprun::launcher
