// SliceAgreement: what rank 0 knows of the slices of all ranks, from one snapshot to the next: the
// lists that fit together, and which rank writes what. As long as no list changes they are neither
// fetched nor checked again.
//
// Pure, but for what `fetch` does. Errors: those of check_slices(), parse_slices() and `fetch`.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "trainer/tensors/slice_list.h"

namespace ddprun::trainer {

class SliceAgreement {
  public:
    // Gets the list that has this checksum.
    using Fetch = std::function<Result<std::string>(const std::string& checksum)>;

    // `checksums`: of each rank's list; empty for a rank without slices.
    Result<void> agree(const std::vector<std::string>& checksums,
                       const std::set<std::string>& shared, const Fetch& fetch);
    // Whether this rank has slices in the accepted lists.
    bool brings(std::size_t rank) const { return !checksums_[rank].empty(); }
    // Of each rank the slices that it writes (slice_choice.h), of the lists that agree() has
    // accepted.
    const std::vector<std::vector<SliceEntry>>& written() const { return written_; }

  private:
    std::vector<std::string> checksums_;
    std::set<std::string> shared_;
    std::vector<std::vector<SliceEntry>> written_;
};

}  // namespace ddprun::trainer
