// Numbers of a job as distinct types, so that a rank cannot be passed where a generation is
// expected. Plain values that compare and print like the integers that they hold. No thread, no
// ownership.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace ddprun {

// An integer with a type of its own: each Tag gives another type.
template <class Tag, class Int>
struct Strong {
    using Value = Int;

    Int value{};

    constexpr Strong() = default;
    constexpr explicit Strong(Int v) : value(v) {}
    constexpr auto operator<=>(const Strong&) const = default;
    friend std::ostream& operator<<(std::ostream& out, Strong id) { return out << id.value; }
};

// One fixed membership with its ranks, numbered 0, 1, 2, … for the whole job. kNoGeneration (-1)
// means "none yet".
using Generation = Strong<struct GenerationTag, std::int64_t>;
inline constexpr Generation kNoGeneration{-1};
// For sentences: "generation 7".
inline std::string to_text(Generation generation) {
    return "generation " + std::to_string(generation.value);
}

// A random number, new for each process. It distinguishes a restarted ddprun from the one before.
using Incarnation = Strong<struct IncarnationTag, std::uint64_t>;

// The number of a ledger entry: 0, 1, 2, … kNoEntry (-1) means "none read yet".
using EntryNumber = Strong<struct EntryNumberTag, std::int64_t>;
inline constexpr EntryNumber kNoEntry{-1};

// Of a worker in the world.
using Rank = Strong<struct RankTag, int>;
// Of a worker on its node.
using LocalRank = Strong<struct LocalRankTag, int>;
// Of a node in a generation. torchrun calls it group rank.
using NodeRank = Strong<struct NodeRankTag, int>;

}  // namespace ddprun

// For unordered containers.
template <class Tag, class Int>
struct std::hash<ddprun::Strong<Tag, Int>> {
    std::size_t operator()(ddprun::Strong<Tag, Int> id) const noexcept {
        return std::hash<Int>{}(id.value);
    }
};
