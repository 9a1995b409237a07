// Bytes as they come from a pipe → whole lines, each with its prefix. Pure.
//
// A line ends with \n, or with a \r that is not followed by \n (a progress bar's update): both are
// kept as they are. Any bytes may occur, and how they were cut into pieces makes no difference.
// With an empty prefix and no needles nothing is held back: bytes pass as they come. With needles
// only lines that contain one of them pass. A line that is too_long() to be kept is opened, and
// what comes of it from then on passes as it comes, or cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

class LineSplitter {
  public:
    static constexpr std::size_t kLongest = std::size_t{32} << 20;

    explicit LineSplitter(std::string prefix, std::vector<std::string> needles = {},
                          std::size_t longest = kLongest)
        : prefix_(std::move(prefix)), needles_(std::move(needles)), longest_(longest) {}

    // The lines that these bytes complete, ready to be written in one piece.
    std::string take(std::string_view bytes);
    // At the end of the stream: the unfinished line; with a prefix, a \n is added, so that the next
    // rank begins anew.
    std::string finish();

    // The unfinished line has kLongest bytes: call one of the next two.
    bool too_long() const { return held_.size() >= longest_; }
    // Its beginning; the rest of it comes from take() without being kept. Only without needles.
    std::string open();
    // All of it so far, as a line.
    std::string cut();
    bool is_open() const { return open_; }
    // Somebody else has ended the open line: what comes is a new one.
    void begin_anew() { open_ = false; }

  private:
    bool passes_as_is() const { return prefix_.empty() && needles_.empty(); }
    bool wanted(std::string_view line) const;
    void end_line(std::string& out, std::string_view rest);

    std::string prefix_;
    std::vector<std::string> needles_;
    std::size_t longest_;
    std::string held_;  // the unfinished line
    bool open_ = false;
};

}  // namespace ddprun::agent
