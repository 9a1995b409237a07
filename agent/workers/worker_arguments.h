// What a worker's command line becomes for its local rank: torchrun replaces ${local_rank} in the
// arguments of the program. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

// $local_rank and ${local_rank} become the number; other names stay. torchrun also makes one dollar
// of two, which breaks a shell's own $$: `collapse` says whether to do so.
std::string with_local_rank(std::string_view text, int local_rank, bool collapse);

// The same for all arguments from the index `first` on.
std::vector<std::string> worker_arguments(std::vector<std::string> argv, std::size_t first,
                                          int local_rank, bool collapse);

}  // namespace ddprun::agent
