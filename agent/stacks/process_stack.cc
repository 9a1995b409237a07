// Collects the stacks of processes: by looking at them, and from a debugging tool.
#include "agent/stacks/process_stack.h"

#include <signal.h>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "agent/stacks/process_look.h"
#include "base/loop/child_program.h"
#include "base/loop/file_thread.h"
#include "base/system/boot_clock.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;
using Process = std::int64_t;

// For all tools together, and for what /proc and the process's memory say.
constexpr auto kToolsLimit = std::chrono::seconds{5}, kLookLimit = std::chrono::seconds{2};
// Limits for one worker's part of the report.
constexpr std::size_t kToolLines = 60, kLineLength = 200;

// The tools in the order in which they are tried. py-spy shows Python functions, so it comes first
// for Python; it shall not stop the process, since it does not return from one that is stopped.
// gdb is not among them: it takes ten seconds, and hangs at stopped processes.
std::vector<std::vector<std::string>> tools(Process pid) {
    const std::string id = std::to_string(pid);
    std::error_code error;
    const std::string program =
        fs::read_symlink(fs::path("/proc") / id / "exe", error).filename().string();
    std::vector<std::vector<std::string>> list;
    if (program.starts_with("python"))
        list.push_back({"py-spy", "dump", "--nonblocking", "--pid", id});
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
        StackLines lines = tool_lines(result->output);
        if (lines.empty()) continue;
        lines.insert(lines.begin(), words[0] + " of process " + std::to_string(pid) + ":");
        co_return lines;
    }
    co_return StackLines{};
}

// Looks on a thread that is given up when it does not come back.
boost::asio::awaitable<std::optional<ProcessLook>> look_in_time(Process pid) {
    auto& loop = static_cast<boost::asio::io_context&>(
        (co_await boost::asio::this_coro::executor).context());
    const auto look = std::make_shared<ProcessLook>();
    FileThread thread(loop);
    const bool in_time =
        co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(bool)>(
            [&](auto handler) {
                // What the thread calls must be copyable, the handler is not.
                const auto told = std::make_shared<decltype(handler)>(std::move(handler));
                thread.post_within(
                    kLookLimit, [look, pid] { *look = look_at_process(pid); },
                    [told](bool done) { std::move (*told)(done); });
            },
            boost::asio::use_awaitable);
    if (in_time) co_return std::move(*look);
    thread.let_go();
    co_return std::nullopt;
}

// The look comes first, because a tool stops the process and changes what the kernel shows.
boost::asio::awaitable<StackLines> stack_of(Process pid) {
    std::optional<ProcessLook> look = co_await look_in_time(pid);
    if (!look)
        co_return StackLines{"the kernel has not let ddprun look at process " +
                             std::to_string(pid) + " in " + to_text(kLookLimit)};
    StackLines lines = std::move(look->lines);
    const Time until = boot_now() + kToolsLimit;
    for (const Process each : look->for_tools)
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
