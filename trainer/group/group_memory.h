// Zero-filled memory of the kind (host or GPU) that a process group works on. It is freed with its
// owner.
#pragma once

#include <cstddef>
#include <memory>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

// Movable, not copyable. Any thread.
class GroupMemory {
  public:
    GroupMemory() = default;  // owns nothing

    // Allocates `bytes` on the host or on this thread's GPU. Errors: unavailable (no memory, no
    // GPU).
    static Result<GroupMemory> make(Memory kind, std::size_t bytes);

    // Whether it owns memory.
    explicit operator bool() const { return memory_ != nullptr; }
    void* data() const { return memory_.get(); }
    Memory kind() const { return memory_.get_deleter().kind; }

  private:
    // The kind travels with the pointer, because each kind has its own free function.
    struct Free {
        Memory kind;
        void operator()(void* memory) const;
    };
    std::unique_ptr<void, Free> memory_;
};

}  // namespace ddprun::trainer
