// The memory of a living process, which runs on while it is read.
//
// Source: process_vm_readv(2). Reading needs the rights to trace the process (ptrace(2), "Ptrace
// access mode checking"), but does not trace it.
#pragma once

#include "diagnosis/stacks/memory.h"

namespace ddprun::agent {

class ProcessMemory : public Memory {
  public:
    explicit ProcessMemory(std::int64_t pid) : pid_(pid) {}
    bool read(Address from, void* to, std::size_t size) override;
    // Of the last read that failed, as errno; 0: none has.
    int error() const { return error_; }

  private:
    std::int64_t pid_;
    int error_ = 0;
};

}  // namespace ddprun::agent
