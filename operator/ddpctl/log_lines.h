// What `ddpctl logs` makes of the text of a worker: lines, and how they are printed. Pure.
//
//   plain, to a file or pipe: as the worker wrote it, line by line
//   to a terminal: "[n2:1]:text", nothing of which the terminal obeys
//   JSON: an object a line
//
// No worker can write what ddpctl says itself: on a terminal all that a worker wrote has its
// prefix, and elsewhere ddpctl's own sentences are not on standard output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::launcher {

struct LogLine {
    bool is_err = false;
    std::string text;
    std::string
        end;  // "\n", "\r\n", "\r" of a progress bar; empty: the line goes on, or has no end
    bool operator==(const LogLine&) const = default;
};

// Puts the pieces of both streams together to lines.
class LogLines {
  public:
    // A longer line comes in parts.
    static constexpr std::size_t kLongest = std::size_t{64} << 10;

    std::vector<LogLine> take(bool is_err, std::string_view bytes);
    // What there is of unfinished lines. What follows of them begins behind it.
    std::vector<LogLine> unfinished();

  private:
    std::string open_[2];
};

enum class LogForm { plain, terminal, json };

class LogPrinter {
  public:
    explicit LogPrinter(LogForm form) : form_(form) {}
    // Which worker's lines follow.
    void begin(const std::string& node, int rank, std::int64_t generation);
    std::string text(const LogLine& line);
    // Ends a line that is open, so that something else can be printed.
    std::string break_line();
    // For JSON only; else empty. `lost`: lines and bytes; -1: not of this kind.
    std::string note(const std::string& event, const std::string& sentence,
                     std::int64_t lost_lines = -1, std::int64_t lost_bytes = -1) const;

  private:
    std::string json(const LogLine& line) const;

    const LogForm form_;
    std::string node_;
    int rank_ = -1;
    std::int64_t generation_ = -1;
    enum class Stands { at_begin, in_line, on_bar } stands_ = Stands::at_begin;
    bool is_err_ = false;  // of the line in which it stands
};

}  // namespace ddprun::launcher
