// Finds the exception of a Python program in the last lines of its output. A program without
// torch.distributed.elastic's @record writes no error file, but Python prints the traceback. Pure.
#pragma once

#include <string>
#include <vector>

namespace ddprun {

// The line that names the newest exception, such as "ValueError: no data", or nothing. The
// beginning of the traceback may be cut off.
std::string python_exception(const std::vector<std::string>& lines);

// Whether pdb has ended the program: its user has left it, or it cannot read. `error`: the message
// of the error file. What was typed may stand between the lines of the traceback.
bool ended_in_debugger(const std::string& error, const std::vector<std::string>& lines);

}  // namespace ddprun
