// Connections between nodes over a network that delays, cuts, stalls in one direction and forgets
// to say that an end is gone. Within one direction of one connection order holds, as TCP promises;
// across connections nothing does. What a partition holds up arrives after it, or never, and then
// the sender learns it late. Owned by the World.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/sim/clock.h"

namespace ddprun::sim {

enum Side { kNode = 0, kLeader = 1 };  // who opened a connection, and whom it called

class Network {
  public:
    using Deliver = std::function<void()>;
    using Ended =
        std::function<void(int connection, Side side)>;  // this side has learned of the end
    using HostUp = std::function<bool(int host)>;

    // `loss`: of packets; TCP sends them again after 0.2 s, then after twice that, and so on.
    Network(Clock& clock, Random& random, Duration lease, double loss, HostUp host_up, Ended ended);

    // A connection that is made at this moment; the handshake is the caller's, with reachable() and
    // delay().
    int open(int node_host, int leader_host);
    bool is_open(int connection, Side side) const;
    // From this side to the other. Nothing happens if this side has ended.
    void send(int connection, Side from, Deliver deliver);
    // This side ends after what it has sent; the other learns it in order, or not, if the network
    // is cut.
    void close(int connection, Side side);
    // Something between the two ends drops the connection: each side learns it at its own time, one
    // perhaps never by itself (half-open: it learns it when it sends).
    void drop(int connection);

    // Nothing passes from one host to another from begin to end. One direction only: say it twice
    // for both.
    void cut(int from, int to, Time begin, Time end);
    // A firewall on that host, or before it, answers with a reset whatever others send it; what it
    // sends itself passes.
    void refuse(int host, int hosts, Time begin, Time end);
    bool refuses(int host) const;
    bool reachable(int from, int to) const {
        return passable(from, to, clock_.now()) <= clock_.now();
    }
    // Whether any cut of this host overlaps that time.
    bool was_cut(int host, Time begin, Time end) const;
    Duration delay(int from, int to);

  private:
    struct Connection {
        int host[2];
        bool open[2] = {true, true};
        Time last[2];       // when the newest message of this side arrives
        Duration patience;  // of TCP with a silent peer
    };

    Time passable(int from, int to, Time when) const;
    void arrive(int connection, Side from, const Deliver& deliver);
    void broke(int connection, Side side);

    Clock& clock_;
    Random& random_;
    Duration lease_;
    double loss_;
    HostUp host_up_;
    Ended ended_;
    std::vector<Connection> connections_;
    std::map<std::pair<int, int>, std::vector<std::pair<Time, Time>>> cuts_;
    std::map<int, std::vector<std::pair<Time, Time>>> refusals_;  // by host
};

}  // namespace ddprun::sim
