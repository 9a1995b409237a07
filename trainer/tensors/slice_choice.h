// Which rank writes a slice that several ranks bring: replicas have it, such as the data parallel
// copies of a tensor parallel shard. It is written once.
//
// Pure.
#pragma once

#include <vector>

#include "trainer/tensors/slice_list.h"

namespace ddprun::trainer {

// Of each rank's slices those that it writes, in the order in which it brings them. `ranks`: lists
// that check_slices() has accepted. A slice that one rank brings is written by it. The others, the
// largest first, go to that of their ranks which has the fewest bytes to write so far, among equal
// ones to the lowest. So equal lists give an equal choice, and replicas write equal shares.
std::vector<std::vector<SliceEntry>> choose_writers(
    const std::vector<std::vector<SliceEntry>>& ranks);

}  // namespace ddprun::trainer
