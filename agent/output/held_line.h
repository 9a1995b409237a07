// One writer's turn at a console, for a line that is too long to be kept in memory: whose turn it
// is, what the others write meanwhile, and when they have waited long enough. Pure; owned by the
// console.
//
// The turn ends when the writer has finished its line. It is cut when `limit` bytes wait behind it,
// or when others wait and the line has not grown for `pause`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

class HeldLine {
  public:
    HeldLine(std::size_t limit, Duration pause) : limit_(limit), pause_(pause) {}

    // `who` identifies the writer. Returns false if another turn has not ended.
    bool begin(const void* who, Time now);
    // Ends the turn, and returns what the others have written, in its order.
    std::vector<std::string> end();

    bool is_held() const { return holder_ != nullptr; }
    bool is_held_by(const void* who) const { return holder_ == who; }
    // The holder has written more of its line.
    void grew(Time now) { grew_at_ = now; }
    // Another writes. Returns whether the line must be cut now, because too much waits.
    bool put_behind(std::string bytes);
    std::size_t bytes_behind() const { return bytes_behind_; }
    // Whether the line must be cut because it does not grow.
    bool stands_still(Time now) const { return !behind_.empty() && now - grew_at_ >= pause_; }

  private:
    std::size_t limit_;
    Duration pause_;
    const void* holder_ = nullptr;
    Time grew_at_{};  // when the holder last wrote
    std::vector<std::string> behind_;
    std::size_t bytes_behind_ = 0;
};

}  // namespace ddprun::agent
