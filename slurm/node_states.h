// Reads which nodes Slurm has taken out of service, from the output of `sinfo -h -N -o "%N %T"`.
// Pure.
//
// The output has one line for each node and partition, for example "n3 drained*".
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ddprun::slurm {

// Returns node name and state of the nodes that Slurm has taken out of service or has lost:
// drained, draining, down, fail, failing, inval, and those without power. The state comes without
// the signs behind it (`*` means: does not answer). A node that is only slow to answer is in
// service.
std::map<std::string, std::string> nodes_out_of_service(std::string_view text);

}  // namespace ddprun::slurm
