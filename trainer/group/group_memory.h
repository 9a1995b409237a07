// Memory of the kind that a process group works on, filled with zeros. Moved, not copied.
#pragma once

#include <cstddef>
#include <memory>

#include "trainer/group/process_group.h"

namespace ddprun::trainer {

class GroupMemory {
  public:
    GroupMemory() = default;  // none

    // Errors: unavailable.
    static Result<GroupMemory> make(Memory kind, std::size_t bytes);

    explicit operator bool() const { return memory_ != nullptr; }
    void* data() const { return memory_.get(); }
    Memory kind() const { return memory_.get_deleter().kind; }

  private:
    struct Free {
        Memory kind;
        void operator()(void* memory) const;
    };
    std::unique_ptr<void, Free> memory_;
};

}  // namespace ddprun::trainer
