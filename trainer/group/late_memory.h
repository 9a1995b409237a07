// LateMemory: memory that is still written after a call has returned, until another call of the
// program ends that. What reads it too early would get half old values, and nothing would show it:
// so a save asks here first.
//
// One list for the process. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

class LateMemory {
  public:
    // `advice`: what the program has to call, as the end of a sentence.
    LateMemory(const std::vector<Buffer>& buffers, std::string advice);
    ~LateMemory();
    LateMemory(const LateMemory&) = delete;
    LateMemory& operator=(const LateMemory&) = delete;

    void set_late(bool late) { *late_ = late; }

  private:
    const std::shared_ptr<std::atomic<bool>> late_ = std::make_shared<std::atomic<bool>>(false);
};

// Whether memory of the program may be read. Errors: usage; the sentence begins with `name`.
Result<void> check_settled(const std::string& name, std::span<const std::byte> memory);

}  // namespace ddprun::trainer
