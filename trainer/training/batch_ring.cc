// Which slot is next.
#include "trainer/training/batch_ring.h"

namespace ddprun::trainer {

std::size_t BatchRing::begin() {
    const std::size_t slot = begun_++ % slots();
    loaded_[slot] = false;
    return slot;
}

std::optional<std::size_t> BatchRing::front(std::size_t ahead) const {
    if (taken_ + ahead >= begun_) return std::nullopt;
    const std::size_t slot = (taken_ + ahead) % slots();
    return loaded_[slot] ? std::optional(slot) : std::nullopt;
}

}  // namespace ddprun::trainer
