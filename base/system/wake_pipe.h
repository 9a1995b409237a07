// Wakes a thread that sleeps in poll(). Not an eventfd, which some sandboxes refuse.
//
// Thread: wake() from any; drain() from the one that sleeps.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun {

class WakePipe {
  public:
    // Of nobody: it wakes nobody.
    WakePipe() = default;

    // `what` it is for, as the error says it. Errors: unavailable (descriptors).
    static Result<WakePipe> make(const std::string& what) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
            return Error(ErrorCode::unavailable, "no descriptors to be had for " + what + ": " +
                                                     std::strerror(errno) + "; raise ulimit -n");
        WakePipe made;
        made.sleeps_.reset(ends[0]), made.wakes_.reset(ends[1]);
        return made;
    }

    // Readable from the first wake() on, until drain().
    int fd() const { return sleeps_.get(); }

    void wake() const { (void)!::write(wakes_.get(), "", 1); }  // a full pipe wakes, too

    void drain() const {
        char some[64];
        while (::read(sleeps_.get(), some, sizeof some) > 0) {
        }
    }

  private:
    UniqueFd sleeps_, wakes_;
};

}  // namespace ddprun
