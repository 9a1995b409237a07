// The last lines that one worker printed, for the failure report. Pure.
//
// Both streams feed the same list, each through its own Stream, so that their lines do not mix. A
// line is kept up to kLongest bytes; of a progress bar (\r) only what a terminal would still show.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

class LastLines {
  public:
    static constexpr std::size_t kCount = 20;
    static constexpr std::size_t kLongest = 2000;

    // The unfinished line of one stream.
    struct Stream {
        std::string line;
    };

    void take(Stream& stream, std::string_view bytes);
    void finish(Stream& stream);  // an unfinished line counts as one
    std::vector<std::string> lines() const { return {lines_.begin(), lines_.end()}; }

  private:
    static std::string_view that_may_stay(std::string_view bytes);

    std::deque<std::string> lines_;
};

}  // namespace ddprun::agent
