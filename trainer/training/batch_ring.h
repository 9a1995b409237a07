// BatchRing: the slots of batches that are loaded ahead. They are begun in order and handed out in
// order, whichever is loaded first.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ddprun::trainer {

class BatchRing {
  public:
    explicit BatchRing(std::size_t slots) : loaded_(slots) {}

    std::size_t slots() const { return loaded_.size(); }

    // Whether all slots are in use.
    bool full() const { return begun_ - taken_ == slots(); }

    // The slot of the next batch; its loading begins. Not while full().
    std::size_t begin();
    void loaded(std::size_t slot) { loaded_[slot] = true; }

    // The slot of the oldest batch, or of one `ahead` of it, once that is loaded.
    std::optional<std::size_t> front(std::size_t ahead = 0) const;

    // The number of the oldest batch, counted from 0.
    std::uint64_t number() const { return taken_; }

    // The oldest batch is used up: its slot is free.
    void pop() { ++taken_; }

    // Forgets all batches. None may be loading.
    void clear() { begun_ = taken_; }

  private:
    std::vector<bool> loaded_;
    std::uint64_t begun_ = 0, taken_ = 0;  // batches
};

}  // namespace ddprun::trainer
