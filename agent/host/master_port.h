// Holds the port that this node offers for the workers' store of the next generation. If the node
// gets rank 0, it becomes MASTER_PORT.
//
// The port is new for every generation that uses it, so a worker of an old generation cannot reach
// the store of a new one. If possible the next two ports are free, too, because some programs use
// MASTER_PORT+1 and +2.
//
// There is no gap between "looks free" and "bound": the port is bound and listens from the offer
// on, and the two neighbours stay bound until the generation starts. The ports are below the range
// from which the kernel gives ports to clients (ip_local_port_range); otherwise any outgoing
// connection could take a neighbour.
//
// Thread: the loop's.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class MasterPort {
  public:
    // `loopback_only`: for a job of one node, where nobody else has to reach the store.
    explicit MasterPort(bool loopback_only) : loopback_only_(loopback_only) {}

    // Returns the port; the same one until take() is called. Possible errors: unavailable (no port
    // can be bound).
    Result<std::uint16_t> offer();

    // Hands over the listening socket for the generation that starts now, and releases the two
    // neighbours. Returns -1 when `port` is not the one that was offered.
    UniqueFd take(std::uint16_t port);

  private:
    bool loopback_only_;
    std::uint16_t port_ = 0;  // 0 when no port is held
    UniqueFd listener_, neighbours_[2];
};

}  // namespace ddprun::agent
