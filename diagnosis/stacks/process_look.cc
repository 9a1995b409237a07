// Puts together what Python and the kernel say about a process.
#include "diagnosis/stacks/process_look.h"

#include <algorithm>

#include "diagnosis/stacks/python_process.h"
#include "keeper/killing/descendants.h"

namespace ddprun::agent {
namespace {

using Process = std::int64_t;

constexpr std::size_t kOwnFrames = 5;

// The main thread first, then those that run Python: the others are seldom of interest.
std::vector<Process> in_order(std::vector<Process> threads, const PythonProcess& python) {
    const auto is_first = [&](Process thread) {
        return std::ranges::any_of(python.threads,
                                   [&](const PythonThread& each) { return each.id == thread; });
    };
    if (!threads.empty()) std::stable_partition(threads.begin() + 1, threads.end(), is_first);
    return threads;
}

void add_threads(StackLines& lines, Process pid, const PythonProcess& python,
                 const LookLimits& limits) {
    const std::vector<Process> threads = in_order(threads_of(pid), python);
    for (std::size_t i = 0; i < std::min(threads.size(), limits.threads); ++i) {
        lines.push_back(kernel_line(pid, threads[i]));
        for (const PythonThread& each : python.threads)
            if (each.id == threads[i]) add_frames(lines, each, limits.frames);
    }
    if (threads.size() > limits.threads)
        lines.push_back("and " + std::to_string(threads.size() - limits.threads) + " more threads");
}

// Up to 3.10 the number of a thread may not be known.
void add_unknown_threads(StackLines& lines, const PythonProcess& python, const LookLimits& limits) {
    for (const PythonThread& each : python.threads)
        if (each.id == 0) {
            lines.push_back("a thread of Python");
            add_frames(lines, each, limits.frames);
        }
}

// The main thread is what the ranks wait for, so its functions come first.
void add_own(StackLines& lines, const PythonProcess& python) {
    for (const PythonThread& thread : python.threads) {
        const std::string own = own_frames(thread);
        if (own.empty()) continue;
        lines.push_back("in " + own);
        break;
    }
}

}  // namespace

void add_frames(StackLines& lines, const PythonThread& thread, std::size_t most) {
    if (thread.holds_gil) lines.back() += "; holds the GIL";
    for (std::size_t i = 0; i < std::min(thread.frames.size(), most); ++i)
        lines.push_back("    " + frame_text(thread.frames[i]));
    if (thread.frames.size() > most)
        lines.push_back("    … called by " + std::to_string(thread.frames.size() - most) +
                        (thread.cut ? " or more" : "") + " functions");
}

std::string own_frames(const PythonThread& thread) {
    std::string text;
    std::size_t count = 0;
    for (std::size_t i = 0; i < thread.frames.size(); ++i) {
        if (!is_users_own(thread.frames[i])) continue;
        if (++count > kOwnFrames) return text + ", …";
        const std::string operation =
            text.empty() ? called_operation(thread.frames, i) : std::string();
        text += (text.empty() ? "" : ", called by ") + frame_text(thread.frames[i]);
        if (!operation.empty()) text.insert(text.size() - 1, ", " + operation);
    }
    return text;
}

ProcessLook look_at_process(Process pid, const LookLimits& limits) {
    ProcessLook look;
    for (const Process each : with_children(pid, limits.processes)) {
        const PythonProcess python = read_python(each);
        if (python.is_python) look.python.push_back(each);
        if (python.threads.empty()) look.for_tools.push_back(each);
        if (python.threads.empty() && python.is_python) look.unread.push_back(each);
        add_own(look.lines, python);
        add_threads(look.lines, each, python, limits);
        add_unknown_threads(look.lines, python, limits);
        if (!python.problem.empty())
            look.lines.push_back("no functions of Python in process " + std::to_string(each) +
                                 ", because " + python.problem);
    }
    return look;
}

}  // namespace ddprun::agent
