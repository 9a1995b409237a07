// What a terminal gets from the ranks of a node, when a line that several print is shown once
// (collapsed_lines.h). Pure.
//
// Complete lines are held and joined. All else passes as it comes, after the rank's lines that are
// held: a progress bar (\r), a prompt (text without an end for the window), a line that moves the
// cursor, and a line that is longer than kLongest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agent/output/collapsed_lines.h"
#include "base/time.h"

namespace ddprun::agent {

class CollapsedOutput {
  public:
    static constexpr std::size_t kLongest = std::size_t{16} << 10;

    // For the terminal. `who` is null for whole lines with their labels; else these are the next
    // bytes of this stream.
    struct Piece {
        const void* who = nullptr;
        std::string prefix, bytes;
        bool operator==(const Piece&) const = default;
    };
    using Pieces = std::vector<Piece>;

    CollapsedOutput(std::vector<int> ranks, CollapsedLines::Label label)
        : lines_(std::move(ranks), std::move(label)) {}

    // The next bytes of a stream. `who` identifies it; `index` (of its rank) and `prefix` are the
    // same each time.
    Pieces print(const void* who, std::size_t index, std::string_view prefix,
                 std::string_view bytes, Time now);
    // The stream has ended.
    Pieces finish(const void* who, Time now);
    // What has waited long enough.
    Pieces ready(Time now);
    // All lines that are held, because something else is shown now.
    Pieces all(Time now);
    // When ready() has more; kNever: nothing waits.
    Time next() const;

  private:
    struct Stream {
        const void* who = nullptr;
        std::size_t index = 0;
        std::string prefix;
        std::string unfinished;  // not shown yet
        Time since = kNever;     // when its first byte came
        bool passes = false;     // the beginning of its line is shown
    };
    Stream& stream(const void* who, std::size_t index, std::string_view prefix);
    void end_line(Stream& stream, std::string_view line, Time now, Pieces& out);
    void pass(Stream& stream, std::string_view bytes, Time now, Pieces& out);
    void add_ready(Time now, Pieces& out);

    CollapsedLines lines_;
    std::vector<Stream> streams_;  // with unfinished lines
};

}  // namespace ddprun::agent
