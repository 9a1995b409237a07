// What all ranks must know alike, asked with one small collective each: means over ranks, whether
// somebody wants to stop, whether parameters are equal and gradients are numbers.
//
// All ranks make the same calls; all get the same answer. Errors: those of the group; refused, when
// ranks differ where they must not; malformed, for gradients that are no numbers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/group/process_group.h"
#include "trainer/training/metrics.h"

namespace ddprun::trainer {

// Of validation, for instance: exact also when ranks had unequally many samples.
Result<WeightedMean> mean_over_ranks(ProcessGroup& group, const WeightedMean& mine);

// Whether any rank says yes. The agreed last step: a rank that was told to stop (ddprun sends
// SIGTERM when the end is near) says so at the end of each step, and all stop after the same one.
Result<bool> any_rank(ProcessGroup& group, bool mine);

// Each rank's number, by rank.
Result<std::vector<double>> values_of_ranks(ProcessGroup& group, double mine);

struct NamedBuffer {
    std::string name;
    Buffer buffer;  // of the group's kind of memory
};

// Compares checksums (XXH3) of each buffer. The error names the first that differs, and the ranks
// that differ from rank 0.
Result<void> verify_equal(ProcessGroup& group, std::span<const NamedBuffer> buffers);

// Whether names, types and counts are the same on all ranks.
Result<void> verify_same_shapes(ProcessGroup& group, std::span<const NamedBuffer> buffers);

// Looks for infinities and NaNs, before the gradients are reduced: afterwards they are everywhere.
// The error names the first such buffer and the rank.
Result<void> verify_finite(ProcessGroup& group, std::span<const NamedBuffer> gradients);

// The second half of it: `mine` is the first of these in which this rank found one, if any.
Result<void> verify_none_found(ProcessGroup& group, std::span<const NamedBuffer> gradients,
                               std::optional<std::size_t> mine);

}  // namespace ddprun::trainer
