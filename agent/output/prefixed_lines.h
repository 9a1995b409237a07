// Splits bytes from a pipe into whole lines and adds a prefix to each. Pure.
//
// A line ends with \n, or with a \r that is not followed by \n (the update of a progress bar). Line
// ends are kept as they are. Any bytes may occur, and it does not matter how they are cut into
// pieces. Without prefix and needles, bytes pass immediately and nothing is held back. With needles
// only lines that contain one of them pass. When a line is too_long() to be kept, the caller either
// opens it (the rest passes without being kept) or cuts it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

class PrefixedLines {
  public:
    // The longest line that is kept in memory: 32 MiB.
    static constexpr std::size_t kLongest = std::size_t{32} << 20;

    // `needles` are the texts of a filter. Tests pass a smaller `longest`.
    explicit PrefixedLines(std::string prefix, std::vector<std::string> needles = {},
                           std::size_t longest = kLongest)
        : prefix_(std::move(prefix)), needles_(std::move(needles)), longest_(longest) {}

    // Returns the lines that these bytes complete, to be written in one piece.
    std::string take(std::string_view bytes);
    // Call at the end of the stream. Returns the unfinished line. If there is a prefix, it adds \n,
    // so that the next rank's text starts on a new line.
    std::string finish();

    // The unfinished line has reached `longest` bytes. Call open() or cut().
    bool too_long() const { return held_.size() >= longest_; }
    // Returns the beginning of the line. take() then passes the rest on at once. Only without
    // needles.
    std::string open();
    // Returns what there is of the line, as a whole line.
    std::string cut();
    bool is_open() const { return open_; }
    // Somebody else has ended the open line, so the next bytes start a new one.
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
