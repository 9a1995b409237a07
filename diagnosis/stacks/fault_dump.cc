// Finds threads and functions in a dump.
#include "diagnosis/stacks/fault_dump.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "diagnosis/stacks/process_look.h"

namespace ddprun::agent {
namespace {

constexpr std::size_t kShownThreads = 16;  // that are shown
constexpr std::string_view kBegin = "Fatal Python error: ", kThread = "(most recent call first):";

// A line with the name of a thread; the C stack of 3.14 has the same words at its end.
bool begins_thread(std::string_view line) {
    return line.ends_with(kThread) &&
           (line.starts_with("Thread 0x") || line.starts_with("Current thread 0x"));
}

// "  File "/data/eval.py", line 88 in evaluate".
std::optional<PythonFrame> frame_in(std::string_view line) {
    constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = " in ";
    if (!line.starts_with(kFile)) return std::nullopt;
    const std::size_t end = line.rfind(kLine);
    if (end == line.npos || end < kFile.size()) return std::nullopt;
    PythonFrame frame;
    frame.file = line.substr(kFile.size(), end - kFile.size());
    const std::string_view rest = line.substr(end + kLine.size());
    std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
    const std::size_t in = rest.find(kIn);
    if (in != rest.npos) frame.function = rest.substr(in + kIn.size());
    return frame;
}

}  // namespace

FaultDump fault_dump(const std::vector<std::string>& lines) {
    FaultDump dump;
    const auto first = std::ranges::find_if(lines, [](const std::string& line) {
        return line.starts_with(kBegin) || begins_thread(line);
    });
    dump.before.assign(lines.begin(), first);
    for (auto line = first; line != lines.end(); ++line) {
        if (begins_thread(*line))
            dump.threads.emplace_back();
        else if (const auto frame = frame_in(*line); frame && !dump.threads.empty())
            dump.threads.back().frames.push_back(*frame);
    }
    std::ranges::reverse(dump.threads);
    return dump;
}

StackLines dump_lines(const FaultDump& dump) {
    StackLines lines;
    for (const PythonThread& thread : dump.threads) {
        const std::string own = own_frames(thread);
        if (own.empty()) continue;
        lines.push_back("in " + own);
        break;
    }
    for (std::size_t i = 0; i < std::min(dump.threads.size(), kShownThreads); ++i) {
        lines.push_back("a thread of Python");
        add_frames(lines, dump.threads[i]);
    }
    if (dump.threads.size() > kShownThreads)
        lines.push_back("and " + std::to_string(dump.threads.size() - kShownThreads) +
                        " more threads");
    return lines;
}

}  // namespace ddprun::agent
