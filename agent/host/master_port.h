// The port that a node offers for the workers' store of the next generation (MASTER_PORT if it has
// rank 0): fresh for every generation that uses it, so that no worker of an old one can reach a new
// one's store, and where possible with the next two free, since programs take MASTER_PORT+1 and +2.
//
// The port is bound and listening from the offer on, the two neighbours are bound too, and let go
// only when the generation starts: nothing is looked at first and bound later. It lies below the
// range from which the kernel gives ports to clients, which would take a free neighbour at any
// moment. Shell; the loop's thread.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class MasterPort {
  public:
    explicit MasterPort(bool loopback_only) : loopback_only_(loopback_only) {}

    // The same one until it is taken. Possible errors: unavailable.
    Result<std::uint16_t> offer();

    // The listening socket of the port that was offered, for the generation that begins; its
    // neighbours are free from now on. -1: this port is not the one offered.
    UniqueFd take(std::uint16_t port);

  private:
    bool loopback_only_;
    std::uint16_t port_ = 0;  // 0: none is held
    UniqueFd listener_, neighbours_[2];
};

}  // namespace ddprun::agent
