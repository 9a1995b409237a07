// Connections between nodes over a network that delays, cuts, stalls in one direction, and forgets
// to report that an end is gone. Within one direction of one connection the order holds, as TCP
// promises. Across connections no order holds. What a partition holds up arrives after it, or
// never; then the sender learns it late.
//
// Owned by the World.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/sim/clock.h"

namespace ddprun::sim {

enum Side { kNode = 0, kLeader = 1 };  // who opened a connection, and who was called

class Network {
  public:
    using Deliver = std::function<void()>;
    using Ended =
        std::function<void(int connection, Side side)>;  // this side has learned of the end
    using HostUp = std::function<bool(int host)>;

    // `loss` is the share of lost packets. TCP sends them again after 0.2 s, then after twice that,
    // and so on. `slow` is the share of connections that take a way on which each message needs up
    // to 0.1 of a lease, so that a newer connection overtakes an older one.
    Network(Clock& clock, Random& random, Duration lease, double loss, double slow, HostUp host_up,
            Ended ended);

    // Makes a connection at this moment. The caller models the handshake, with reachable() and
    // delay().
    int open(int node_host, int leader_host);
    bool is_open(int connection, Side side) const;
    // Sends from this side to the other. Nothing happens if this side has ended.
    void send(int connection, Side from, Deliver deliver);
    // This side ends after what it has sent. The other side learns it in order, or does not learn
    // it if the network is cut.
    void close(int connection, Side side);
    // Something in between drops the connection. Each side learns it at its own time. One side may
    // learn it only late (half-open), as when a firewall has forgotten the connection.
    void drop(int connection);
    // The same, but this side learns it at once.
    void reset(int connection, Side side);

    // Nothing passes from one host to another from `begin` to `end`. One direction only: call it
    // twice for both.
    void cut(int from, int to, Time begin, Time end);
    // A firewall on that host, or before it, answers with a reset whatever others send to it. What
    // the host sends itself passes.
    void refuse(int host, int hosts, Time begin, Time end);
    bool refuses(int host) const;
    bool reachable(int from, int to) const {
        return passable(from, to, clock_.now()) <= clock_.now();
    }
    // Whether any cut of this host overlaps that time.
    bool was_cut(int host, Time begin, Time end) const;
    // A random time for one message, lost packets included.
    Duration delay(int from, int to);

  private:
    struct Connection {
        int host[2];
        bool open[2] = {true, true};
        Time last[2];       // when the newest message of this side arrives
        Duration patience;  // how long TCP tries with a silent peer
        Duration way{};     // added to the delay of each message
    };

    // The first moment from `when` on at which no cut holds.
    Time passable(int from, int to, Time when) const;
    void arrive(int connection, Side from, const Deliver& deliver);
    void broke(int connection, Side side);

    Clock& clock_;
    Random& random_;
    Duration lease_;
    double loss_, slow_;
    HostUp host_up_;
    Ended ended_;
    std::vector<Connection> connections_;
    std::map<std::pair<int, int>, std::vector<std::pair<Time, Time>>> cuts_;
    std::map<int, std::vector<std::pair<Time, Time>>> refusals_;  // by host
};

}  // namespace ddprun::sim
