// The keeper's timer: a descriptor that becomes readable at a moment on CLOCK_BOOTTIME. It fires
// for a deadline that passed while the host was suspended, too. Keeper process only.
#pragma once

#include "base/system/unique_fd.h"
#include "base/time.h"

namespace ddprun::agent::keeper {

class DeadlineTimer {
  public:
    // Returns false if the kernel gives no timer.
    bool open();
    int fd() const { return timer_.get(); }
    // kNever: it does not fire. A moment in the past fires at once.
    void set(Time next);
    // Whether it has fired since the last call.
    bool fired();

  private:
    UniqueFd timer_;
};

}  // namespace ddprun::agent::keeper
