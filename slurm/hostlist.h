// Expands Slurm's compressed host lists, for example `gpu[01-04,7],login1`, to names, and folds
// names again for log lines. Pure.
//
//   list   := name { separator name }          separator: comma, blank, tab, newline
//   name   := text { '[' ranges ']' text }     one number of each bracket
//   ranges := range { ',' range }
//   range  := low [ '-' high ]                 decimal; low gives the width (zero padding)
//
// If a name has several brackets, the last one varies fastest, then the first, then the second, and
// so on. This is the order in which Slurm prints such names. Empty names are skipped. Order and
// duplicates are kept.
//
// Not supported, and rejected: steps in ranges, repetition (`n*2`), base-36 boxes, a bracket
// without its partner, and a range that ends before it begins. Memory is limited by the constants
// below, whatever the text says.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::slurm {

inline constexpr std::size_t kMostHostsInRange = 65536;  // Slurm has the same limit
inline constexpr std::size_t kMostHosts = 4 * kMostHostsInRange;

// Returns the names in order. Possible errors: malformed, for example "not a host range at
// character 9". Characters count from 1. The caller adds the name of the variable and its text.
Result<std::vector<std::string>> expand_hostlist(std::string_view expression);

// Neighbours whose text around the last number is equal share a bracket. expand_hostlist() of the
// result gives the same names in the same order.
std::string fold_hostlist(const std::vector<std::string>& names);

}  // namespace ddprun::slurm
