// Fills in ${local_rank} in the arguments of a worker's program, as torchrun does. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

// Replaces $local_rank and ${local_rank} by the number; other names stay. torchrun also turns "$$"
// into "$", which breaks `$$` in shell commands; `collapse` says whether to do this.
std::string with_local_rank(std::string_view text, int local_rank, bool collapse);

// Does this for all arguments from index `first` on. Arguments before it belong to the interpreter.
std::vector<std::string> worker_arguments(std::vector<std::string> argv, std::size_t first,
                                          int local_rank, bool collapse);

}  // namespace ddprun::agent
