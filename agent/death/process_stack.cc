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

constexpr auto kToolsLimit = std::chrono::seconds{5};
constexpr std::size_t kProcesses = 4, kToolLines = 60, kLineLength = 200;

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

// gdb says much before it comes to the point.
bool worth_a_line(const std::string& tool, const std::string& line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return false;
    return tool != "gdb" || line.starts_with("#") || line.starts_with("Thread ");
}

StackLines tool_lines(const std::string& tool, const std::string& output) {
    StackLines lines;
    std::istringstream text(output);
    for (std::string line; std::getline(text, line);) {
        if (!worth_a_line(tool, line)) continue;
        if (lines.size() == kToolLines) {
            lines.push_back("…");
            break;
        }
        lines.push_back(line.substr(0, kLineLength));
    }
    return lines;
}

boost::asio::awaitable<StackLines> user_stack(Process pid, Time until) {
    for (const std::vector<std::string>& words : tools(pid)) {
        const Duration left = until - boot_now();
        if (left <= Duration{}) break;
        const char before = process_state(pid);
        const auto result = co_await run_program(words, {}, left);
        // A tool that was killed may leave the process stopped.
        if (before != 'T' && process_state(pid) == 'T') ::kill(static_cast<pid_t>(pid), SIGCONT);
        if (!result || result->code != 0) continue;
        StackLines lines = tool_lines(words[0], result->output);
        if (lines.empty()) continue;
        lines.insert(lines.begin(), words[0] + " of process " + std::to_string(pid) + ":");
        co_return lines;
    }
    co_return StackLines{};
}

boost::asio::awaitable<StackLines> stack_of(Process pid) {
    const Time until = boot_now() + kToolsLimit;
    const std::vector<Process> processes = with_children(pid, kProcesses);
    StackLines lines;  // first the kernel's of all, for a tool may stop what it looks at
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
    const auto all = std::make_shared<Collected>(
        Collected{std::vector<StackLines>(pids.size()), pids.size(), std::move(done)});
    if (pids.empty()) return boost::asio::post(loop, [all] { all->done({}); });
    for (std::size_t i = 0; i < pids.size(); ++i)
        boost::asio::co_spawn(loop, stack_of(pids[i]),
                              [all, i](const std::exception_ptr& failed, StackLines lines) {
                                  if (!failed) all->stacks[i] = std::move(lines);
                                  if (--all->missing == 0) all->done(std::move(all->stacks));
                              });
}

}  // namespace ddprun::agent
