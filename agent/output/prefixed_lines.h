// Splits bytes from a pipe into whole lines and adds a prefix to each. Pure.
//
// A line ends with \n, or with a \r that is not followed by \n (the update of a progress bar). Line
// ends are kept as they are. Any bytes may occur, and it does not matter how they are cut into
// pieces. Without prefix and needles, bytes pass immediately and nothing is held back. With needles
// only lines that contain one of them pass. When a line is too_long() to be kept, the caller either
// opens it (the rest passes without being kept) or cuts it. All streams of a node share one budget,
// so that many long lines do not fill the memory together.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

// What the unfinished lines of all streams may take together.
struct LineBudget {
    std::size_t limit = std::size_t{256} << 20;
    // When nothing is left, a stream still keeps a line of this length.
    std::size_t sure = std::size_t{64} << 10;
    std::size_t used = 0;
};

class PrefixedLines {
  public:
    // The longest line that is kept in memory: 32 MiB.
    static constexpr std::size_t kLongest = std::size_t{32} << 20;

    // `needles` are the texts of a filter. Without a budget there is one for this object alone.
    // Tests pass a smaller `longest`.
    explicit PrefixedLines(std::string prefix, std::vector<std::string> needles = {},
                           std::shared_ptr<LineBudget> budget = nullptr,
                           std::size_t longest = kLongest)
        : prefix_(std::move(prefix)),
          needles_(std::move(needles)),
          budget_(budget ? std::move(budget) : std::make_shared<LineBudget>()),
          longest_(longest) {}
    ~PrefixedLines() { budget_->used -= counted_; }
    PrefixedLines(const PrefixedLines&) = delete;
    PrefixedLines& operator=(const PrefixedLines&) = delete;

    // Returns the lines that these bytes complete, to be written in one piece.
    std::string take(std::string_view bytes);
    // Call at the end of the stream. Returns the unfinished line. If there is a prefix, it adds \n,
    // so that the next rank's text starts on a new line.
    std::string finish();

    // The unfinished line has reached `longest` bytes, or the budget is used up and it is not
    // short. Call open() or cut().
    bool too_long() const {
        return held_.size() >= longest_ ||
               (budget_->used >= budget_->limit && held_.size() >= budget_->sure);
    }
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
    void count();

    std::string prefix_;
    std::vector<std::string> needles_;
    std::shared_ptr<LineBudget> budget_;
    std::size_t longest_;
    std::string held_;         // the unfinished line
    std::size_t counted_ = 0;  // bytes of it that are in the budget
    bool open_ = false;
};

}  // namespace ddprun::agent
