// Collects the stacks of processes: by looking at them, and from a debugging tool.
#include "diagnosis/stacks/process_stack.h"

#include <signal.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <optional>
#include <sstream>

#include "base/loop/child_program.h"
#include "base/loop/in_time.h"
#include "base/system/boot_clock.h"
#include "diagnosis/stacks/process_look.h"

namespace ddprun::agent {
namespace {

using Process = std::int64_t;

// For what /proc and the process's memory say, for all tools of a worker together, and for the last
// look at a process that a tool may have stopped.
constexpr auto kLookLimit = std::chrono::seconds{2}, kToolsLimit = std::chrono::seconds{5},
               kLastLook = std::chrono::seconds{1};
// Limits for one worker's part of the report.
constexpr std::size_t kToolLines = 60, kLineLength = 200;

// The tools in the order in which they are tried. py-spy shows Python functions, so it comes first
// for Python; it shall not stop the process, since it does not return from one that is stopped.
// gdb is not among them: it takes ten seconds, and hangs at stopped processes.
std::vector<std::vector<std::string>> tools(Process pid, bool is_python) {
    const std::string id = std::to_string(pid);
    std::vector<std::vector<std::string>> list;
    if (is_python) list.push_back({"py-spy", "dump", "--nonblocking", "--pid", id});
    list.push_back({"eu-stack", "-n", "20", "-p", id});
    return list;
}

StackLines tool_lines(const std::string& output) {
    StackLines lines;
    std::istringstream text(output);
    for (std::string line; std::getline(text, line);) {
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        // The ellipsis shows that lines are missing.
        if (lines.size() == kToolLines) {
            lines.push_back("…");
            break;
        }
        lines.push_back(line.substr(0, kLineLength));
    }
    return lines;
}

// '?': it has gone, or nobody may look at it until then.
boost::asio::awaitable<char> thread_state(Process pid, Time until) {
    const Duration left = std::min<Duration>(kLookLimit, until - boot_now());
    if (left <= Duration{}) co_return '?';
    co_return (co_await in_time(left, [pid] { return process_state(pid); })).value_or('?');
}

// What a tool says. A tool that is not installed fails at once.
boost::asio::awaitable<StackLines> ask(std::vector<std::string> words, Process pid, Time until) {
    const char before = co_await thread_state(pid, until);
    // The limit is for all tools of a process and its children, so a later tool has less time.
    const Duration left = until - boot_now();
    if (before == '?' || left <= Duration{}) co_return StackLines{};
    const auto result = co_await run_program(words, {}, left);
    // A tool that was killed may have left the process stopped.
    if (before != 'T' && co_await thread_state(pid, until + kLastLook) == 'T')
        ::kill(static_cast<pid_t>(pid), SIGCONT);
    // Not installed, not permitted, or too late.
    if (!result || result->code != 0) co_return StackLines{};
    StackLines lines = tool_lines(result->output);
    if (!lines.empty())
        lines.insert(lines.begin(), words[0] + " of process " + std::to_string(pid) + ":");
    co_return lines;
}

// Tries one tool after the other until one answers.
boost::asio::awaitable<StackLines> user_stack(Process pid, bool is_python, Time until) {
    for (const std::vector<std::string>& words : tools(pid, is_python)) {
        StackLines lines = co_await ask(words, pid, until);
        if (!lines.empty()) co_return lines;
    }
    co_return StackLines{};
}

// py-spy shows functions of C++ between those of Python, but stops the process for that, for up to
// a second. One that is stopped already it cannot show, and one that hangs in the kernel it waits
// for.
boost::asio::awaitable<StackLines> native_stack(Process pid, Time until) {
    const char state = co_await thread_state(pid, until);
    if (state == 'T' || state == 't' || state == 'D' || state == '?') co_return StackLines{};
    const std::vector<std::string> words{"py-spy", "dump", "--native", "--pid",
                                         std::to_string(pid)};
    co_return co_await ask(words, pid, until);
}

// Why there is no look.
std::string not_looked(Process pid, bool full) {
    const std::string process = "process " + std::to_string(pid);
    if (full)
        return "ddprun has not looked at " + process + ", since " + std::to_string(kWorksAtOnce) +
               " of its looks at processes have not come back from the kernel";
    return "the kernel has not let ddprun look at " + process + " in " + to_text(kLookLimit);
}

boost::asio::awaitable<StackLines> only_look(Process pid) {
    const bool full = works_under_way >= kWorksAtOnce;
    std::optional<ProcessLook> look =
        co_await in_time(kLookLimit, [pid] { return look_at_process(pid, kWideLook); });
    co_return look ? std::move(look->lines) : StackLines{not_looked(pid, full)};
}

// The look comes first, because a tool stops the process and changes what the kernel shows.
boost::asio::awaitable<FoundStack> stack_of(Process pid, Time answered_by) {
    FoundStack found;
    const bool full = works_under_way >= kWorksAtOnce;
    std::optional<ProcessLook> look =
        co_await in_time(kLookLimit, [pid] { return look_at_process(pid); });
    if (!look) {
        found.lines = {not_looked(pid, full)};
        co_return found;
    }
    found.lines = std::move(look->lines);
    const Time until = std::min<Time>(boot_now() + kToolsLimit, answered_by - kLastLook);
    for (const Process each : look->for_tools) {
        const bool is_python = std::ranges::count(look->unread, each) > 0;
        const StackLines lines = co_await user_stack(each, is_python, until);
        found.lines.insert(found.lines.end(), lines.begin(), lines.end());
        if (is_python && lines.empty()) found.unread.push_back(each);
    }
    for (const Process each : look->python) {
        const StackLines lines = co_await native_stack(each, until);
        found.native.insert(found.native.end(), lines.begin(), lines.end());
    }
    co_return found;
}

}  // namespace

void stacks_of(boost::asio::io_context& loop, const std::vector<Process>& pids, Duration limit,
               std::function<void(std::vector<FoundStack>)> done) {
    struct Collected {
        std::vector<FoundStack> stacks;
        std::size_t missing;
        std::function<void(std::vector<FoundStack>)> done;
    };
    // All processes are examined at the same time, so the time limit holds for all together.
    const auto all = std::make_shared<Collected>(
        Collected{std::vector<FoundStack>(pids.size()), pids.size(), std::move(done)});
    // Even then the answer comes from the loop, never from within this call.
    if (pids.empty()) return boost::asio::post(loop, [all] { all->done({}); });
    const Time until = boot_now() + limit;
    for (std::size_t i = 0; i < pids.size(); ++i)
        boost::asio::co_spawn(loop, stack_of(pids[i], until),
                              // A failure of one examination leaves its entry empty. The others
                              // still count.
                              [all, i](const std::exception_ptr& failed, FoundStack found) {
                                  if (!failed) all->stacks[i] = std::move(found);
                                  if (--all->missing == 0) all->done(std::move(all->stacks));
                              });
}

void look_without_tools(boost::asio::io_context& loop, Process pid,
                        std::function<void(StackLines)> done) {
    boost::asio::co_spawn(loop, only_look(pid),
                          [done = std::move(done)](const std::exception_ptr&, StackLines lines) {
                              done(std::move(lines));
                          });
}

}  // namespace ddprun::agent
