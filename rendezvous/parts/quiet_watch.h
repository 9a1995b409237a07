// When a log that has had nothing to say gets a line on how the job stands (--status-every), so
// that whoever looks into it after hours knows that the job lives. Pure; owned by the rendezvous
// machine.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/time.h"

namespace ddprun::rendezvous {

class QuietWatch {
  public:
    // 0: never.
    explicit QuietWatch(Duration every) : every_(every) {}

    void spoke(Time now) { spoke_ = now; }
    Time due() const { return every_ > Duration{} && spoke_ > kLongAgo ? spoke_ + every_ : kNever; }
    // How many steps were made since the last line; nothing: that is not known, or none was told.
    std::optional<std::int64_t> steps_since(std::int64_t step) {
        const std::int64_t before = std::exchange(step_, step);
        return before >= 0 && step >= before ? std::optional(step - before) : std::nullopt;
    }
    void generation_began() { step_ = -1; }

  private:
    Duration every_;
    Time spoke_ = kLongAgo;
    std::int64_t step_ = -1;  // at the last line
};

}  // namespace ddprun::rendezvous
