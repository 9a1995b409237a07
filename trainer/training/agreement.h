// Small collective questions whose answer all ranks must share: means over ranks, whether some rank
// wants to stop, whether parameters are equal, whether gradients are finite.
//
// All ranks must make the same calls. All get the same answer. Errors: those of the group; refused,
// if ranks differ where they must be equal; malformed, for gradients that are not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/group/process_group.h"
#include "trainer/training/metrics.h"

namespace ddprun::trainer {

// The mean over all samples of all ranks, for example of a validation. It is exact also if the
// ranks had different numbers of samples.
Result<WeightedMean> mean_over_ranks(ProcessGroup& group, const WeightedMean& mine);

// Whether any rank says true. With it the ranks agree on their last step: a rank that was asked to
// stop (StopRequest) says so at the end of a step, and all ranks stop after that step.
Result<bool> any_rank(ProcessGroup& group, bool mine);

// What the launcher asks a rank for.
struct Asked {
    bool stop = false;          // StopRequest
    std::int64_t snapshot = 0;  // SnapshotRequest: the number of the newest request; 0: none
};

// What any rank was asked for, in one question: all ranks take the same snapshots, and stop after
// the same step.
Result<Asked> asked_of_any(ProcessGroup& group, const Asked& mine);

// One number of each rank, in the order of the ranks.
Result<std::vector<double>> values_of_ranks(ProcessGroup& group, double mine);

// A parameter or a gradient, with the name that messages use.
struct NamedBuffer {
    std::string name;
    Buffer buffer;  // in the group's kind of memory
};

// Compares the content of all buffers over the ranks, by checksums (XXH3). The error names the
// first buffer that differs, and the ranks that do not have what most ranks have (or, of two equal
// halves, what rank 0 has).
Result<void> verify_equal(ProcessGroup& group, std::span<const NamedBuffer> buffers);

// When the replicas of a training are compared: in its first steps, and then in every `every`-th.
struct ReplicaChecks {
    std::int64_t first = 10;
    std::int64_t every = 0;  // 0: not after the first ones
    // Steps are counted from 1.
    bool due(std::uint64_t step) const {
        const auto number = static_cast<std::int64_t>(step);
        return number <= first || (every > 0 && number % every == 0);
    }
};

// Compares the content of all buffers as verify_equal() does, but reads a sample of them (64 MiB;
// on a GPU 16), in each `turn` another one, and sends one small message if they are equal. Ranks
// whose state is not that of the others on purpose (Join) give `compared` = false, and take part in
// the message alone.
Result<void> verify_replicas(ProcessGroup& group, std::span<const NamedBuffer> buffers,
                             std::uint64_t turn, bool compared = true);

// A setting that must be the same on all ranks, for example a learning rate.
struct NamedNumber {
    std::string name;
    double value = 0;
};

// Compares numbers over the ranks. The error has the first one that differs, with two values.
Result<void> verify_equal_numbers(ProcessGroup& group, std::span<const NamedNumber> numbers);

// Compares names, types and sizes of the buffers over the ranks.
Result<void> verify_same_shapes(ProcessGroup& group, std::span<const NamedBuffer> buffers);

// Looks for infinities and NaNs. Call it before the gradients are reduced: the reduction spreads
// them to all ranks. The error names the first such buffer, and the lowest rank that has it.
Result<void> verify_finite(ProcessGroup& group, std::span<const NamedBuffer> gradients);

// The second half of verify_finite(), for callers that search themselves. `mine` is the index of
// the first buffer in which this rank found one. The rank that the error names also tells it to
// ddprun (Progress), which says it in its log.
Result<void> verify_none_found(ProcessGroup& group, std::span<const NamedBuffer> gradients,
                               std::optional<std::size_t> mine);

}  // namespace ddprun::trainer
