// The states of nodes as sinfo says them (`sinfo -h -N -o "%N %T"`): "n3 drained*", a line each, and
// once more for each partition. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ddprun::slurm {

// Those that Slurm has taken out of service, or has lost: drained, draining, down, fail, failing,
// and what is without power. With the state, without the signs behind it (`*`: does not answer). A
// node that is only slow to answer is in service.
std::map<std::string, std::string> nodes_out_of_service(std::string_view text);

}  // namespace ddprun::slurm
