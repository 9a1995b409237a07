// What tensors hold that all ranks have: hashes, by which ranks see in a save whether they have the
// same. One rank writes each of them, so with tensors that differ the snapshot would be a mixture.
//
// Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/tensors/tensor_view.h"

namespace ddprun::trainer {

// 16 hexadecimal digits for each tensor without a place, in the order of the names. Of tensors of
// more than 16 MiB together a sample is read, in each `turn` another one (hash_sample.h).
std::string contents_of(const std::vector<TensorView>& tensors, std::uint64_t turn);

// Compares the contents_of() of all ranks, in the order of the ranks. `names`: of the tensors. The
// error is refused; it names the first tensor that differs, and the ranks that do not have what
// most ranks have.
Result<void> compare_contents(const std::set<std::string>& names,
                              const std::vector<std::string>& contents);

}  // namespace ddprun::trainer
