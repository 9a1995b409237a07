// Random numbers as a function of seed and place. There is no generator with a state, so a snapshot
// does not have to save one.
#pragma once

#include <cstdint>

namespace example {

// A well mixed 64-bit number for each pair. The two last multiplications are those of SplitMix64.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t place) {
    std::uint64_t z =
        seed * 0xD1342543DE82EF95u + place * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// In [-1, 1). It uses 24 bits, which a float holds exactly, so all machines get the same bits.
constexpr float uniform(std::uint64_t seed, std::uint64_t place) {
    return static_cast<float>(static_cast<std::int32_t>(mix(seed, place) >> 40) - (1 << 23)) /
           (1 << 23);
}

}  // namespace example
