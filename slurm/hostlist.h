// Slurm's compressed host expressions, e.g. `gpu[01-04,7],login1`: expanded to names, and folded
// again for logs.
//
//   list   := name { separator name }          separator: comma, blank, tab, newline
//   name   := text { '[' ranges ']' text }     one number of each bracket
//   ranges := range { ',' range }
//   range  := low [ '-' high ]                 decimal; low gives the width (zero padding)
//
// The last bracket varies fastest, and of the others the first one does, which is what Slurm
// prints. Empty names are skipped.
// Order and duplicates are kept. There are no steps, no repetition (`n*2`) and no base-36 boxes:
// those are refused, as are a bracket without its other half and a range that ends before it
// begins. Pure, and bounded in memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::slurm {

inline constexpr std::size_t kMostHostsInRange = 65536;  // Slurm's own limit
inline constexpr std::size_t kMostHosts = 4 * kMostHostsInRange;

// The names in order. Possible errors: malformed, e.g. "not a host range at character 9" (counted
// from 1); the caller puts the name of the variable and the text in front.
Result<std::vector<std::string>> expand_hostlist(std::string_view expression);

// Neighbours with the same text around their last number share a bracket, so that expanding gives
// the same list.
std::string fold_hostlist(const std::vector<std::string>& names);

}  // namespace ddprun::slurm
