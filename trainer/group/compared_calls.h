// How the ranks see that they make the same call, whatever carries the bytes: the part that all
// backends on CPUs share.
//
// Pure, but for what `move` does. Errors: refused: the sentence names the rank that differs, and
// both calls.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "base/error.h"
#include "trainer/group/operation.h"
#include "trainer/group/rank_names.h"

namespace ddprun::trainer {

// `all`: of each rank what it calls, as opinion_of() has it.
Result<void> compare_calls(const Operation& mine, std::span<const Opinion> all,
                           const JobRanks& job);

// Sends to `root` and receives from `source` of an operation between two ranks, at the same time;
// what is not there is not moved. Only messages with the same tag meet: 1 for headers, 2 for data.
using Move =
    std::function<Result<void>(int tag, std::optional<Buffer> out, std::optional<Buffer> in)>;

// Send, receive or exchange. Both headers arrive before any data, so that a rank refuses a count or
// type that it did not expect.
Result<void> call_pairwise(const Operation& operation, const JobRanks& job, const Move& move);

}  // namespace ddprun::trainer
