// A queue of bytes that wait for a slow reader, with their number. Pure.
//
// The bytes of one append() stay together. If the user prefers losing lines to waiting,
// drop_oldest() removes whole lines from the front. A line that has begun to leave is always
// finished, so the reader never sees half a line.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

class ByteQueue {
  public:
    // Adds bytes at the end. They need not be whole lines.
    void append(std::string bytes);
    // The bytes that leave next; empty when nothing waits. There may be more behind them.
    std::string_view front() const;
    // The first `count` bytes of front() have left.
    void consume(std::size_t count);
    // Removes all bytes and returns them. They count as having left.
    std::vector<std::string> take_all();
    std::size_t size() const { return size_; }

    // Drops lines from the front until at most `most` bytes wait, and returns the number of dropped
    // lines. The rest of a line that has begun to leave stays. If the end of a dropped line has not
    // arrived yet, the rest is dropped when it arrives.
    std::size_t drop_oldest(std::size_t most);

  private:
    std::string take_line();
    bool skip_line();
    void left(std::string_view bytes);

    std::deque<std::string> chunks_;
    std::size_t offset_ = 0;  // how much of the first chunk has left
    std::size_t size_ = 0;
    bool mid_line_ = false;  // the last byte that left was not the end of a line
    bool skipping_ = false;  // bytes up to the next line end belong to a dropped line
};

}  // namespace ddprun::agent
