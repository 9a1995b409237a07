// Notices a worker that writes without a pause, faster than it can be read. How much that is
// depends on the machine and on the others, so what counts is that there is always more. Pure.
#pragma once

#include <cstddef>
#include <optional>

#include "base/time.h"

namespace ddprun::agent {

class FloodWatch {
  public:
    // How long it must go on: a burst is no flood.
    static constexpr Duration kLong = std::chrono::seconds{5};

    // When more comes later than `gap` after the last, it begins anew: on a loaded machine a reader
    // may be faster than the worker for a moment.
    explicit FloodWatch(Duration gap = kNoGap) : gap_(gap) {}

    // So many bytes were read, and there are more. Returns once, when this has gone on for kLong,
    // how many bytes there were.
    std::optional<std::size_t> more(std::size_t bytes, Time now);
    // Everything was read, or the reader itself had to wait.
    void pause() { since_.reset(); }

  private:
    static constexpr Duration kNoGap = std::chrono::hours{1};

    Duration gap_;
    std::optional<Time> since_;
    Time last_{};
    std::size_t bytes_ = 0;  // since then
    bool told_ = false;
};

}  // namespace ddprun::agent
