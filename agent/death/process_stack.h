// Where a living process is: for the report of a job that hangs.
//
// What the kernel says needs no tool (kernel_stack.h). What the program itself is doing is asked of
// the first tool that is installed and answers in time: py-spy for Python, else eu-stack,
// else gdb. Where processes may not be traced (ptrace_scope, a container) only the kernel's part is
// left. A worker that is a script is looked at with its children, a few of them.
//
// Thread: the loop's. Within six seconds, whatever the tools do; a tool that is late is killed, and
// a process that it had stopped goes on.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "agent/death/kernel_stack.h"

namespace ddprun::agent {

// Of all at once; `done` is called once on the loop, with as many as there are pids, in their
// order.
void stacks_of(boost::asio::io_context& loop, const std::vector<std::int64_t>& pids,
               std::function<void(std::vector<StackLines>)> done);

}  // namespace ddprun::agent
