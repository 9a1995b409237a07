#include "tests/sim/network.h"

#include <algorithm>

namespace ddprun::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Network::Network(Clock& clock, Random& random, Duration lease, double loss, HostUp host_up,
                 Ended ended)
    : clock_(clock),
      random_(random),
      lease_(lease),
      loss_(loss),
      host_up_(std::move(host_up)),
      ended_(std::move(ended)) {}

int Network::open(int node_host, int leader_host) {
    Connection connection;
    connection.host[kNode] = node_host;
    connection.host[kLeader] = leader_host;
    connection.last[kNode] = connection.last[kLeader] = clock_.now();
    connection.patience = random_.span(share(lease_, 1.5), 4 * lease_);
    connections_.push_back(connection);
    return static_cast<int>(connections_.size()) - 1;
}

bool Network::is_open(int connection, Side side) const {
    return connections_[connection].open[side];
}

Duration Network::delay(int from, int to) {
    if (from == to) return random_.span(microseconds{1}, microseconds{10});
    Duration lost{};
    for (Duration again = milliseconds{200}; loss_ > 0 && random_.chance(loss_); again *= 2)
        lost += again;
    // Mostly quick, now and then as slow as a busy switch.
    if (random_.chance(0.01)) return lost + random_.span(share(lease_, 0.001), share(lease_, 0.05));
    return lost + random_.span(share(lease_, 0.00005), share(lease_, 0.001));
}

Time Network::passable(int from, int to, Time when) const {
    const auto found = cuts_.find({from, to});
    if (from == to || found == cuts_.end()) return when;
    for (const auto& [begin, end] : found->second)
        if (begin <= when && when < end) when = end;
    return when;
}

void Network::send(int number, Side from, Deliver deliver) {
    Connection& connection = connections_[number];
    if (!connection.open[from]) return;
    const int here = connection.host[from], there = connection.host[1 - from];
    const Time now = clock_.now();
    if (here != there && refuses(there) && reachable(there, here)) {
        clock_.after(delay(there, here), [this, number, from] { broke(number, from); });
        return;
    }
    const Time free = passable(here, there, now);
    if (free - now > connection.patience || !host_up_(there)) {
        clock_.after(connection.patience, [this, number, from] { broke(number, from); });
        return;
    }
    // What cannot be acknowledged is arrived all the same, but its sender gives up.
    if (passable(there, here, now) - now > connection.patience)
        clock_.after(connection.patience, [this, number, from] { broke(number, from); });
    Time when = free + delay(here, there);
    if (free > now) when += random_.span({}, std::min(free - now, share(lease_, 0.5)));
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
    } else if (!connection.open[to]) {  // the kernel over there answers with a reset
        const Time now = clock_.now();
        const int here = connection.host[to], there = connection.host[from];
        if (passable(here, there, now) == now)  // behind what was sent before
            clock_.at(std::max(now + delay(here, there), connection.last[to] + Duration{100}),
                      [this, number, from] { broke(number, from); });
    } else {
        deliver();
    }
}

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
    if (!host_up_(here) || passable(here, there, clock_.now()) > clock_.now()) return;
    const Time when =
        std::max(clock_.now() + delay(here, there), connection.last[side] + Duration{100});
    clock_.at(when, [this, number, other] { broke(number, other); });
}

void Network::drop(int number) {
    const int knows = random_.below(3);  // node, leader, both
    for (const Side side : {kNode, kLeader})
        if (knows == 2 || knows == side)
            clock_.after(random_.span({}, share(lease_, 0.3)),
                         [this, number, side] { broke(number, side); });
        else  // it sends into the void and is told late, or when its peer has gone
            clock_.after(random_.span(share(lease_, 0.3), 3 * lease_),
                         [this, number, side] { broke(number, side); });
}

void Network::cut(int from, int to, Time begin, Time end) {
    auto& list = cuts_[{from, to}];
    list.emplace_back(begin, end);
    std::sort(list.begin(), list.end());
}

void Network::refuse(int host, int hosts, Time begin, Time end) {
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
