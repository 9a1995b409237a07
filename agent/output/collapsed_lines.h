// One line for what many ranks print. Pure.
//
// Ranks that warn or fail together print equal lines. A complete line is held for kWindow. While it
// is held, the equal line of another rank joins it, and it is printed once, with a label that names
// all of its ranks.
//
// Exact: each rank's lines keep their order, and each is printed once for each rank that has
// printed it (tests/fuzz/collapsed_lines.cc takes the result apart again). Only lines of different
// ranks may change places, by kWindow at most. So a line that differs from rank to rank (the last
// of a traceback) does not separate the equal lines before and after it.
//
// PyTorch begins each line of a traceback with "[rank7]: ". Lines that differ only in this are
// equal, and are printed with "[rank*]: ".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

class CollapsedLines {
  public:
    static constexpr Duration kWindow = std::chrono::milliseconds{200};
    // When more is held, the oldest line is printed before its time.
    static constexpr std::size_t kMostLines = 8192;
    static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

    // The text before a line: indexes of the ranks that have printed it, in ascending order.
    using Label = std::function<std::string(const std::vector<std::size_t>& indexes)>;

    // The ranks of this node, by index.
    CollapsedLines(std::vector<int> ranks, Label label);

    // A rank has printed a line; `line` has no end. `now` never goes back.
    void take(std::size_t index, std::string_view line, Time now);
    // Prints what this rank has printed until now, and all that comes before it.
    void release(std::size_t index);
    void release_all();
    // Returns whole lines, to be printed now.
    std::string ready(Time now);
    // When ready() has more; kNever: nothing is held.
    Time next() const;

  private:
    using Slot = std::int32_t;
    static constexpr Slot kNone = -1;
    static constexpr std::uint64_t kGap = std::uint64_t{1} << 20;

    struct Held {
        std::string text;        // without the "[rank7]: " of a tagged line
        bool is_tagged = false;  // it began with the tag of its rank
        bool is_alone = false;   // looks like a tag of several ranks: nothing joins it
        std::size_t hash = 0;
        std::size_t count = 0;               // of its ranks
        std::uint64_t order = 0;             // ascending along the list
        Time until = kNever;                 // ascending along the list, too
        Slot before = kNone, after = kNone;  // in the list
        Slot newer = kNone, older = kNone;   // in the bucket of its hash
    };

    Held& at(Slot slot) { return held_[static_cast<std::size_t>(slot)]; }
    const Held& at(Slot slot) const { return held_[static_cast<std::size_t>(slot)]; }
    std::uint64_t* ranks_of(Slot slot) { return &bits_[static_cast<std::size_t>(slot) * words_]; }
    bool has(Slot slot, std::size_t index) const {
        return (bits_[static_cast<std::size_t>(slot) * words_ + index / 64] >> (index % 64) & 1) !=
               0;
    }
    Slot& bucket(std::size_t hash) { return buckets_[hash % buckets_.size()]; }

    Slot find(std::size_t index, const Held& wanted) const;
    Slot place(Slot last, const Held& line) const;
    Slot insert(Slot after, Time now);
    void join(Slot slot, std::size_t index);
    void number_anew();
    std::size_t rank_of(Slot slot) const;
    const std::string& label_of_several(Slot slot);
    void print_first();
    void drop_first();

    std::vector<std::string> tags_;    // by index: "[rank7]: "
    std::vector<std::string> labels_;  // by index: the label of one rank alone
    Label label_;
    std::size_t words_;  // of 64 bits, for one set of ranks
    std::vector<Held> held_;
    std::vector<std::uint64_t> bits_;  // by slot: its ranks
    std::vector<Slot> free_, buckets_;
    std::vector<Slot> last_;  // by index: the rank's last line that is held
    Slot head_ = kNone, tail_ = kNone;
    std::size_t lines_ = 0, bytes_ = 0;  // held
    Held candidate_;                     // keeps its memory from line to line
    std::string ready_;
    std::vector<std::uint64_t> several_;  // the ranks of the last label of several ranks …
    std::string several_label_;           // … and this label
};

}  // namespace ddprun::agent
