// Finds the exception of a Python program in the last lines of its output. A program without
// torch.distributed.elastic's @record writes no error file, but Python prints the traceback. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// The line that names the newest exception, such as "ValueError: no data", or nothing. The
// beginning of the traceback may be cut off.
std::string python_exception(const std::vector<std::string>& lines);

// What pdb raises when its user leaves it, or when it cannot read: then there is nobody to ask.
bool is_debugger_quit(std::string_view exception);

}  // namespace ddprun
