// Hashes of several memories, of which only a sample is read: so ranks compare what must be equal
// on all of them, often and cheaply. Each call takes other parts, by its turn; after some turns all
// of it was read. Small memories are read each time.
//
// Pure, but for `read`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"

namespace ddprun::trainer {

// About so many bytes are read: at 10 GB/s in a few milliseconds, and in less than two.
inline constexpr std::size_t kLargeSample = std::size_t{64} << 20;
inline constexpr std::size_t kSmallSample = std::size_t{16} << 20;

// Bytes of a memory, `count` from `first` on. They are used before the next call.
using ReadBytes = std::function<Result<std::span<const std::byte>>(
    std::size_t index, std::size_t first, std::size_t count)>;

// One hash for each memory; 0 if nothing of it was read. Equal on two ranks if sizes, turn, `most`
// and the bytes that are read are equal. Errors: those of `read`.
Result<std::vector<std::uint64_t>> hash_sample(const std::vector<std::size_t>& sizes,
                                               std::uint64_t turn, std::size_t most,
                                               const ReadBytes& read);

}  // namespace ddprun::trainer
