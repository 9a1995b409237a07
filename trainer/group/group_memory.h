// Zeroed memory of a group's kind: on the host, on the GPU, or where a backend's network reads it
// best. Programs get it from ProcessGroup::allocate().
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/error.h"

namespace ddprun::trainer {

// Where the buffers of a group lie.
enum class Memory {
    host,
    gpu,  // memory of the worker's own GPU
};

// Owns the memory. Movable, not copyable. Any thread.
class GroupMemory {
  public:
    using Free = std::function<void(void*)>;

    GroupMemory() = default;  // owns nothing

    // Allocates `bytes` on the host or on this thread's GPU. Errors: unavailable (no memory, no
    // GPU).
    static Result<GroupMemory> make(Memory kind, std::size_t bytes);
    // Takes memory over that `free` gives back.
    static GroupMemory own(Memory kind, void* memory, Free free);

    // Whether it owns memory.
    explicit operator bool() const { return memory_ != nullptr; }
    void* data() const { return memory_.get(); }
    Memory kind() const { return kind_; }

  private:
    Memory kind_ = Memory::host;
    std::unique_ptr<void, Free> memory_;
};

}  // namespace ddprun::trainer
