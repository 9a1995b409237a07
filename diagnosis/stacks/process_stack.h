// Finds out where living processes are, for the report of a job that hangs.
//
// What Python and the kernel say needs no tool (process_look.h). For other programs, and where
// Python cannot be read, the first tool is used that is installed and answers in time: py-spy for
// Python, else eu-stack. py-spy also adds functions of C++. If processes may not be traced
// (ptrace_scope, a container), only the kernel's part remains. A worker may be a script that starts
// the real program, so a few of its children are examined, too.
//
// Thread: the loop's. The answer comes in time, whatever the tools and the kernel do. A tool that
// takes too long is killed, and a process that it had stopped continues.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "diagnosis/stacks/kernel_stack.h"

namespace ddprun::agent {

struct FoundStack {
    StackLines lines;
    StackLines native;  // with functions of C++, where py-spy is installed; else empty
    // Processes that run Python and whose functions nobody could read.
    std::vector<std::int64_t> unread;
};

// Calls `done` once from the loop. The result has one entry for each pid, in the same order.
// `limit`: when the answer must come, at least the two seconds of the own look; tools have what is
// left.
void stacks_of(boost::asio::io_context& loop, const std::vector<std::int64_t>& pids, Duration limit,
               std::function<void(std::vector<FoundStack>)> done);

// What can be seen of one process and its children without any tool, which would stop it: for a
// look at a worker that is to go on. Calls `done` once from the loop, within two seconds.
void look_without_tools(boost::asio::io_context& loop, std::int64_t pid,
                        std::function<void(StackLines)> done);

}  // namespace ddprun::agent
