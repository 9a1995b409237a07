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
// connection could take a neighbour. On a host whose clients get nearly all ports that cannot be.
//
// A node that reaches the leader from another interface offers another port. The leader may have
// assigned the one before already, so each stays until one of them is taken.
//
// It listens where it has to be reached, and nowhere else: on loopback for a job of one node; else
// on the address that workers are told, if that is an address of this host, and on loopback for
// programs beside it. A *name* may mean another of this host's addresses on another host, so it
// listens on all of them then; also for an address that is not ours (translated, or of a proxy).
//
// Thread: the loop's.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class MasterPort {
  public:
    // `loopback_only`: for a job of one node, where nobody else has to reach the store.
    explicit MasterPort(bool loopback_only) : loopback_only_(loopback_only) {}

    // `told`: what workers are told as the store's address. `local`: all addresses of this host.
    // Returns the port; the same one for the same `told` until take() has given one away. Possible
    // errors: unavailable (no port can be bound).
    Result<std::uint16_t> offer(const std::string& told, const std::vector<std::string>& local);

    // Hands over the listening sockets for the generation that starts now, and releases the
    // neighbours and all other offers. Returns none, and releases nothing, when `port` was not
    // offered since the last time.
    std::vector<UniqueFd> take(std::uint16_t port);

    // Where the port listens that was offered or taken last: "127.0.0.1 only", "10.0.0.7 and
    // loopback", "all addresses, since gpu01 is a name".
    const std::string& where() const { return where_; }

  private:
    struct Held {
        std::string told, where;
        std::vector<boost::asio::ip::address> places = {};  // where to bind; empty: all addresses
        std::vector<UniqueFd> listeners = {};
        UniqueFd neighbours[2] = {};
        std::uint16_t port = 0;
    };

    Held choose_place(const std::string& told, const std::vector<std::string>& local) const;
    void bind(Held& held) const;

    bool loopback_only_;
    std::vector<Held> held_;
    std::string where_;
};

}  // namespace ddprun::agent
