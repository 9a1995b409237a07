// Collects the stacks of processes: first from the kernel, then from a debugging tool.
#include "agent/death/process_stack.h"

#include <signal.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/loop/child_program.h"
#include "base/system/boot_clock.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;
using Process = std::int64_t;

// For all tools together.
constexpr auto kToolsLimit = std::chrono::seconds{5};
// Limits for one worker's part of the report.
constexpr std::size_t kProcesses = 4, kToolLines = 60, kLineLength = 200;

// The tools in the order in which they are tried. py-spy shows Python functions, so it comes first
// for Python. gdb is slow and comes last; debuginfod is switched off, because it would download
// symbols.
std::vector<std::vector<std::string>> tools(Process pid) {
    const std::string id = std::to_string(pid);
    std::error_code error;
    const std::string program =
        fs::read_symlink(fs::path("/proc") / id / "exe", error).filename().string();
    std::vector<std::vector<std::string>> list;
    if (program.starts_with("python")) list.push_back({"py-spy", "dump", "--pid", id});
    list.push_back({"eu-stack", "-n", "20", "-p", id});
    list.push_back({"gdb", "--nx", "--batch", "--quiet", "-iex", "set debuginfod enabled off",
                    "-iex", "set pagination off", "-p", id, "-ex", "thread apply all bt 20"});
    return list;
}

// gdb prints much besides the stacks.
bool worth_a_line(const std::string& tool, const std::string& line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return false;
    return tool != "gdb" || line.starts_with("#") || line.starts_with("Thread ");
}

StackLines tool_lines(const std::string& tool, const std::string& output) {
    StackLines lines;
    std::istringstream text(output);
    for (std::string line; std::getline(text, line);) {
        if (!worth_a_line(tool, line)) continue;
        // The ellipsis shows that lines are missing.
        if (lines.size() == kToolLines) {
            lines.push_back("…");
            break;
        }
        lines.push_back(line.substr(0, kLineLength));
    }
    return lines;
}

// Tries one tool after the other until one answers. A tool that is not installed fails at once.
boost::asio::awaitable<StackLines> user_stack(Process pid, Time until) {
    for (const std::vector<std::string>& words : tools(pid)) {
        const Duration left = until - boot_now();
        // The limit is for all tools of a process and its children, so a later tool has less time.
        if (left <= Duration{}) break;
        const char before = process_state(pid);
        const auto result = co_await run_program(words, {}, left);
        // A tool that was killed may have left the process stopped.
        if (before != 'T' && process_state(pid) == 'T') ::kill(static_cast<pid_t>(pid), SIGCONT);
        // Not installed, not permitted, or too late: the next tool may succeed.
        if (!result || result->code != 0) continue;
        StackLines lines = tool_lines(words[0], result->output);
        if (lines.empty()) continue;
        lines.insert(lines.begin(), words[0] + " of process " + std::to_string(pid) + ":");
        co_return lines;
    }
    co_return StackLines{};
}

// The kernel's part of all processes comes first, because a tool stops the process and changes what
// the kernel shows.
boost::asio::awaitable<StackLines> stack_of(Process pid) {
    const Time until = boot_now() + kToolsLimit;
    const std::vector<Process> processes = with_children(pid, kProcesses);
    StackLines lines;
    for (const Process each : processes)
        for (std::string& line : kernel_stack(each)) lines.push_back(std::move(line));
    for (const Process each : processes)
        for (std::string& line : co_await user_stack(each, until)) lines.push_back(std::move(line));
    co_return lines;
}

}  // namespace

void stacks_of(boost::asio::io_context& loop, const std::vector<Process>& pids,
               std::function<void(std::vector<StackLines>)> done) {
    struct Collected {
        std::vector<StackLines> stacks;
        std::size_t missing;
        std::function<void(std::vector<StackLines>)> done;
    };
    // All processes are examined at the same time, so the time limit holds for all together.
    const auto all = std::make_shared<Collected>(
        Collected{std::vector<StackLines>(pids.size()), pids.size(), std::move(done)});
    // Even then the answer comes from the loop, never from within this call.
    if (pids.empty()) return boost::asio::post(loop, [all] { all->done({}); });
    for (std::size_t i = 0; i < pids.size(); ++i)
        boost::asio::co_spawn(loop, stack_of(pids[i]),
                              // A failure of one examination leaves its entry empty. The others
                              // still count.
                              [all, i](const std::exception_ptr& failed, StackLines lines) {
                                  if (!failed) all->stacks[i] = std::move(lines);
                                  if (--all->missing == 0) all->done(std::move(all->stacks));
                              });
}

void add_stacks(boost::asio::io_context& loop, std::vector<rendezvous::WorkerOutcome> outcomes,
                std::function<void(std::vector<rendezvous::WorkerOutcome>)> done) {
    std::vector<Process> pids;
    for (const rendezvous::WorkerOutcome& outcome : outcomes) pids.push_back(outcome.pid);
    stacks_of(loop, pids,
              [outcomes = std::move(outcomes),
               done = std::move(done)](std::vector<StackLines> stacks) mutable {
                  for (std::size_t i = 0; i < stacks.size(); ++i)
                      outcomes[i].stack = std::move(stacks[i]);
                  done(std::move(outcomes));
              });
}

}  // namespace ddprun::agent
