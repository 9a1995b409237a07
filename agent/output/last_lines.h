// Keeps the last lines that one worker printed, for the failure report. Pure.
//
// Both streams fill one list, each through its own Stream, so that their lines do not mix. A line
// is kept up to kLongest bytes. Of a progress bar (\r) only the text that a terminal would still
// show is kept.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

class LastLines {
  public:
    static constexpr std::size_t kCount = 20;      // lines, if keep() says no other number
    static constexpr std::size_t kLongest = 2000;  // bytes in a line

    // The unfinished line of one stream.
    struct Stream {
        std::string line;
    };

    // Adds bytes of one stream, in pieces of any size.
    void take(Stream& stream, std::string_view bytes);
    // The stream has ended: an unfinished line counts as a line.
    void finish(Stream& stream);
    // Keeps so many lines from now on.
    void keep(std::size_t count) { most_ = count; }
    std::vector<std::string> lines() const { return {lines_.begin(), lines_.end()}; }

  private:
    std::string_view that_may_stay(std::string_view bytes) const;

    std::size_t most_ = kCount;
    std::deque<std::string> lines_;
};

}  // namespace ddprun::agent
