// The model of TCP over a network with faults: late news of a lost peer, half-open connections,
// resets from hosts that live, and messages that arrive although their sender has given up.
#include "tests/sim/network.h"

#include <algorithm>

namespace ddprun::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Network::Network(Clock& clock, Random& random, Duration lease, double loss, double slow,
                 HostUp host_up, Ended ended)
    : clock_(clock),
      random_(random),
      lease_(lease),
      loss_(loss),
      slow_(slow),
      host_up_(std::move(host_up)),
      ended_(std::move(ended)) {}

int Network::open(int node_host, int leader_host) {
    Connection connection;
    connection.host[kNode] = node_host;
    connection.host[kLeader] = leader_host;
    connection.last[kNode] = connection.last[kLeader] = clock_.now();
    // Real systems wait from seconds to minutes for a silent peer. Here it is 1.5 to 4 leases:
    // longer than the lease, so TCP reports a loss later than the protocol must notice it.
    connection.patience = random_.span(share(lease_, 1.5), 4 * lease_);
    if (node_host != leader_host && slow_ > 0 && random_.chance(slow_))
        connection.way = random_.span({}, share(lease_, 0.1));
    connections_.push_back(connection);
    return static_cast<int>(connections_.size()) - 1;
}

bool Network::is_open(int connection, Side side) const {
    return connections_[connection].open[side];
}

Duration Network::delay(int from, int to) {
    // Within one host.
    if (from == to) return random_.span(microseconds{1}, microseconds{10});
    Duration lost{};
    // TCP sends a lost packet again after 0.2 s, and doubles the wait each time.
    for (Duration again = milliseconds{200}; loss_ > 0 && random_.chance(loss_); again *= 2)
        lost += again;
    // Mostly quick, and one message in a hundred as slow as through a busy switch.
    if (random_.chance(0.01)) return lost + random_.span(share(lease_, 0.001), share(lease_, 0.05));
    return lost + random_.span(share(lease_, 0.00005), share(lease_, 0.001));
}

Time Network::passable(int from, int to, Time when) const {
    const auto found = cuts_.find({from, to});
    if (from == to || found == cuts_.end()) return when;
    // The cuts are sorted, so one pass also passes through cuts that overlap.
    for (const auto& [begin, end] : found->second)
        if (begin <= when && when < end) when = end;
    return when;
}

void Network::send(int number, Side from, Deliver deliver) {
    Connection& connection = connections_[number];
    if (!connection.open[from]) return;
    const int here = connection.host[from], there = connection.host[1 - from];
    const Time now = clock_.now();
    // The reset comes back as quickly as an answer would.
    if (here != there && refuses(there) && reachable(there, here)) {
        clock_.after(delay(there, here), [this, number, from] { broke(number, from); });
        return;
    }
    const Time free = passable(here, there, now);
    // Nothing passes until TCP gives up, so the message never arrives.
    if (free - now > connection.patience || !host_up_(there)) {
        clock_.after(connection.patience, [this, number, from] { broke(number, from); });
        return;
    }
    // The message arrives, but its acknowledgement does not come back, so the sender gives up.
    if (passable(there, here, now) - now > connection.patience)
        clock_.after(connection.patience, [this, number, from] { broke(number, from); });
    Time when = free + delay(here, there) + connection.way;
    // After a cut TCP waits for its next try, and the longer the cut, the longer that may be.
    if (free > now) when += random_.span({}, std::min(free - now, share(lease_, 0.5)));
    // TCP keeps the order: never before the last message of this side.
    when = std::max(when, connection.last[from] + Duration{100});
    connection.last[from] = when;
    clock_.at(when, [this, number, from, deliver = std::move(deliver)] {
        arrive(number, from, deliver);
    });
}

void Network::arrive(int number, Side from, const Deliver& deliver) {
    const Side to = from == kNode ? kLeader : kNode;
    Connection& connection = connections_[number];
    if (!host_up_(connection.host[to])) {
        clock_.after(connection.patience, [this, number, from] { broke(number, from); });
    } else if (!connection.open[to]) {
        const Time now = clock_.now();
        const int here = connection.host[to], there = connection.host[from];
        if (passable(here, there, now) == now)  // the kernel over there answers with a reset
            clock_.at(std::max(now + delay(here, there), connection.last[to] + Duration{100}),
                      [this, number, from] { broke(number, from); });
    } else {
        deliver();
    }
}

// A side learns of the end once.
void Network::broke(int number, Side side) {
    Connection& connection = connections_[number];
    if (!connection.open[side] || !host_up_(connection.host[side])) return;
    connection.open[side] = false;
    ended_(number, side);
}

void Network::close(int number, Side side) {
    Connection& connection = connections_[number];
    if (!connection.open[side]) return;
    connection.open[side] = false;
    const Side other = side == kNode ? kLeader : kNode;
    const int here = connection.host[side], there = connection.host[other];
    // A FIN is not sent again after a cut. The other side learns of the end only when it sends.
    if (!host_up_(here) || passable(here, there, clock_.now()) > clock_.now()) return;
    const Time when =
        std::max(clock_.now() + delay(here, there), connection.last[side] + Duration{100});
    clock_.at(when, [this, number, other] { broke(number, other); });
}

void Network::drop(int number) {
    // Which side learns it soon: the node, the leader, or both. The other one learns it late, after
    // up to three leases.
    const int knows = random_.below(3);
    for (const Side side : {kNode, kLeader})
        if (knows == 2 || knows == side)
            clock_.after(random_.span({}, share(lease_, 0.3)),
                         [this, number, side] { broke(number, side); });
        else
            clock_.after(random_.span(share(lease_, 0.3), 3 * lease_),
                         [this, number, side] { broke(number, side); });
}

void Network::reset(int number, Side side) {
    drop(number);
    broke(number, side);
}

void Network::cut(int from, int to, Time begin, Time end) {
    // Sorted for passable().
    auto& list = cuts_[{from, to}];
    list.emplace_back(begin, end);
    std::sort(list.begin(), list.end());
}

void Network::refuse(int host, int hosts, Time begin, Time end) {
    // A message to this host counts as cut. send() and reach() then look whether a reset comes
    // back.
    refusals_[host].emplace_back(begin, end);
    for (int other = 0; other < hosts; ++other)
        if (other != host) cut(other, host, begin, end);
}

bool Network::refuses(int host) const {
    const auto found = refusals_.find(host);
    return found != refusals_.end() &&
           std::any_of(found->second.begin(), found->second.end(), [this](const auto& span) {
               return span.first <= clock_.now() && clock_.now() < span.second;
           });
}

bool Network::was_cut(int host, Time begin, Time end) const {
    for (const auto& [pair, list] : cuts_)
        if (pair.first == host || pair.second == host)
            for (const auto& [from, to] : list)
                if (from < end && begin < to) return true;
    return false;
}

}  // namespace ddprun::sim
