// Bytes as they come from a pipe → whole lines, each with its prefix. Pure.
//
// A line ends with \n, or with a \r that is not followed by \n (a progress bar's update): both are
// kept as they are. With an empty prefix nothing is held back: bytes pass as they come. Any bytes
// may occur. A line longer than kLongest is cut, for memory is finite.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun::agent {

class LineSplitter {
  public:
    static constexpr std::size_t kLongest = std::size_t{32} << 20;

    explicit LineSplitter(std::string prefix, std::size_t longest = kLongest)
        : prefix_(std::move(prefix)), longest_(longest) {}

    // The lines that these bytes complete, ready to be written in one piece.
    std::string take(std::string_view bytes);
    // At the end of the stream: the unfinished line; with a prefix, a \n is added, so that the next
    // rank begins anew.
    std::string finish();

  private:
    void close_line(std::string& out, std::string_view end);

    std::string prefix_;
    std::size_t longest_;
    std::string held_;  // the unfinished line
};

}  // namespace ddprun::agent
