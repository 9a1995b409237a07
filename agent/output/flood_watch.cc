// Measures how long a worker has been writing without a pause.
#include "agent/output/flood_watch.h"

namespace ddprun::agent {

std::optional<std::size_t> FloodWatch::more(std::size_t bytes, Time now) {
    if (told_) return std::nullopt;
    if (!since_ || now - last_ > gap_) {
        since_ = now;
        bytes_ = 0;
    }
    last_ = now;
    bytes_ += bytes;
    if (now - *since_ < kLong) return std::nullopt;
    told_ = true;
    return bytes_;
}

}  // namespace ddprun::agent
