// The integer-like things of a job as distinct types, so that a rank cannot be passed where a
// generation is meant. Plain values, compared and printed like the integers they hold; no thread,
// no ownership.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>

namespace ddprun {

// An integer with a name: Tag makes each instance a type of its own.
template <class Tag, class Int>
struct Strong {
    using Value = Int;

    Int value{};

    constexpr Strong() = default;
    constexpr explicit Strong(Int v) : value(v) {}
    constexpr auto operator<=>(const Strong&) const = default;
    friend std::ostream& operator<<(std::ostream& out, Strong id) { return out << id.value; }
};

// One fixed membership with its ranks: 0, 1, 2, … for the whole job. kNoGeneration (-1) stands for
// "none yet".
using Generation = Strong<struct GenerationTag, std::int64_t>;
inline constexpr Generation kNoGeneration{-1};

// Random number of one process, new for each: what tells a restarted ddprun from the one before it.
using Incarnation = Strong<struct IncarnationTag, std::uint64_t>;

// Number of a ledger entry: 0, 1, 2, …; kNoEntry (-1) stands for "has read none".
using EntryNumber = Strong<struct EntryNumberTag, std::int64_t>;
inline constexpr EntryNumber kNoEntry{-1};

using Rank = Strong<struct RankTag, int>;            // of a worker in the world
using LocalRank = Strong<struct LocalRankTag, int>;  // of a worker on its node
using NodeRank =
    Strong<struct NodeRankTag, int>;  // of a node in a generation (torchrun: group rank)

}  // namespace ddprun

template <class Tag, class Int>
struct std::hash<ddprun::Strong<Tag, Int>> {
    std::size_t operator()(ddprun::Strong<Tag, Int> id) const noexcept {
        return std::hash<Int>{}(id.value);
    }
};
