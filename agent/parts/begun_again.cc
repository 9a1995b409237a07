// Compares the first step of a generation with the first one of the job.
#include "agent/parts/begun_again.h"

#include <algorithm>
#include <utility>

namespace ddprun::agent {

std::optional<std::string> BegunAgain::reported(Generation generation, std::int64_t first,
                                                std::int64_t newest, std::int64_t snapshot) {
    const std::int64_t saved = std::exchange(snapshot_, std::max(snapshot_, snapshot));
    if (first < 0) return std::nullopt;
    const bool is_first = std::exchange(generation_, generation) != generation;
    if (is_first) reached_ = std::max(reached_, std::exchange(newest_, -1));
    newest_ = std::max(newest_, newest);
    if (begin_ < 0) begin_ = first;
    if (!is_first || first > begin_ || first >= reached_) return std::nullopt;
    const std::string text = "the training has begun again at step " + std::to_string(first) +
                             ", though it had reached step " + std::to_string(reached_) +
                             " before the restart: nothing was resumed";
    if (saved < 0) return text + " (no snapshot was reported)";
    return text + ", though a snapshot of step " + std::to_string(saved) +
           " was reported; make the program look for its newest one at the start";
}

}  // namespace ddprun::agent
