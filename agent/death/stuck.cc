// Writes the sentence about processes that cannot be killed.
#include "agent/death/stuck.h"

#include <algorithm>
#include <charconv>

namespace ddprun::agent {
namespace {

// Explains D, the usual state of such a process, in words. "wchan" gives the place in the kernel.
std::string state_text(const StuckProcess& process) {
    const std::string where = process.waits_in.empty() ? "" : " in " + process.waits_in;
    if (process.state == 'D') return "it is in an uninterruptible sleep (D)" + where;
    return std::string("it is in state ") + process.state + where;
}

}  // namespace

// The format is "PID (NAME) STATE …". NAME may contain spaces and parentheses, so the fields start
// after the last parenthesis.
StuckProcess read_process_stat(const std::string& stat) {
    StuckProcess process;
    const auto open = stat.find(" ("), close = stat.rfind(')');
    if (open == stat.npos || close == stat.npos || close < open + 2 || close + 2 >= stat.size())
        return process;
    std::from_chars(stat.data(), stat.data() + open, process.pid);
    process.name = stat.substr(open + 2, close - open - 2);
    process.state = stat[close + 2];
    return process;
}

std::string stuck_sentence(std::vector<StuckProcess> processes, Duration since) {
    if (processes.empty()) return {};
    // Workers first: a rank tells the user more than a pid.
    std::ranges::stable_sort(processes, [](const StuckProcess& a, const StuckProcess& b) {
        return (a.rank >= 0) > (b.rank >= 0);
    });
    const StuckProcess& first = processes.front();
    const std::string named = std::to_string(first.pid) + ", " + first.name;
    std::string text = first.rank >= 0
                           ? "rank " + std::to_string(first.rank) + " (process " + named + ")"
                           : "process " + std::to_string(first.pid) + " (" + first.name + ")";
    text += " is still alive " + to_text(since) + " after SIGKILL: " + state_text(first);
    // One example with details and the number of the others: a report of hundreds of processes
    // would hide its reason.
    const std::size_t more = processes.size() - 1;
    if (more > 0)
        text += "; and " + std::to_string(more) + " more process" + (more == 1 ? "" : "es");
    return text;
}

}  // namespace ddprun::agent
