// Bytes that wait for a reader, in the order they came, counted. Pure.
//
// What one append() got stands together. Where the reader does not keep up and the user would
// rather lose lines than time, drop_oldest() takes whole lines from the front; a line that has
// begun to leave is always finished.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

class ByteQueue {
  public:
    void append(std::string bytes);
    // What is to leave next; empty when nothing waits.
    std::string_view front() const;
    void consume(std::size_t count);  // so much of front() has left
    // All that waits, as if it had left.
    std::vector<std::string> take_all();
    std::size_t size() const { return size_; }

    // Until no more than `most` bytes wait. Returns how many lines went. Of a line that has begun
    // to leave the rest stays; a line whose end has not come yet goes with what is still to come
    // of it.
    std::size_t drop_oldest(std::size_t most);

  private:
    std::string take_line();
    bool skip_line();
    void left(std::string_view bytes);

    std::deque<std::string> chunks_;
    std::size_t offset_ = 0;  // of the first chunk, what has left
    std::size_t size_ = 0;
    bool mid_line_ = false;  // what left last was no end of a line
    bool skipping_ = false;  // what comes up to the next end of a line belongs to a dropped one
};

}  // namespace ddprun::agent
