#include "launcher/meeting_point.h"

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>

#include "rendezvous/resolve.h"

namespace ddprun::launcher {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
namespace ip = boost::asio::ip;

constexpr auto kResolveLimit = std::chrono::seconds{10};

Result<tcp::acceptor> try_listen(boost::asio::io_context& loop, const tcp::endpoint& endpoint) {
    tcp::acceptor acceptor(loop);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error && endpoint.protocol() == tcp::v6()) acceptor.set_option(ip::v6_only(false), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error)
        return Error(ErrorCode::unavailable,
                     "port " + std::to_string(endpoint.port()) + ": " + error.message());
    return acceptor;
}

rendezvous::Addresses addresses_of(boost::asio::io_context& loop, const std::string& host) {
    std::optional<Result<rendezvous::Addresses>> found;
    rendezvous::resolve(loop, host, kResolveLimit,
                        [&](Result<rendezvous::Addresses> result) { found = std::move(result); });
    while (!found) {
        if (loop.stopped()) loop.restart();
        loop.run_one();
    }
    return *found ? **found : rendezvous::Addresses{};
}

bool is_ours(const ip::address& address, const HostFacts& host) {
    const auto& own = host.local_addresses;
    return address.is_loopback() ||
           std::find(own.begin(), own.end(), address.to_string()) != own.end();
}

MeetingPoint as_client(const Plan& plan) {
    MeetingPoint point;
    for (const int port : plan.endpoint.ports)
        point.candidates.push_back({plan.endpoint.host, static_cast<std::uint16_t>(port)});
    return point;
}

Result<MeetingPoint> as_leader(boost::asio::io_context& loop, const Plan& plan,
                               const rendezvous::Addresses& addresses) {
    MeetingPoint point;
    point.leads = true;
    const bool loopback =
        !addresses.empty() && std::all_of(addresses.begin(), addresses.end(),
                                          [](const ip::address& a) { return a.is_loopback(); });
    Error last;
    for (const int port : plan.endpoint.ports) {
        auto listener = listen_on(loop, port, loopback);
        if (listener) {
            point.listener = std::move(*listener);
            return point;
        }
        last = listener.error();
    }
    return Error(ErrorCode::unavailable,
                 "rendezvous on " + plan.node_name + ", " + last.sentence() +
                     "; choose another with --rdzv-endpoint=HOST:PORT or --ports=FROM-TO");
}

}  // namespace

Result<tcp::acceptor> listen_on(boost::asio::io_context& loop, int port, bool loopback_only) {
    const auto number = static_cast<std::uint16_t>(port);
    if (loopback_only) return try_listen(loop, {ip::address_v4::loopback(), number});
    auto both = try_listen(loop, {tcp::v6(), number});  // takes IPv4 as well
    return both ? std::move(both) : try_listen(loop, {tcp::v4(), number});
}

Result<MeetingPoint> open_meeting_point(boost::asio::io_context& loop, const Plan& plan,
                                        const HostFacts& host) {
    // One node needs nobody; is_host=0 says that it is to meet at a rendezvous outside all the
    // same.
    if (plan.max_nodes == 1 && plan.lead != Lead::no) {
        MeetingPoint alone;
        alone.leads = true;
        return alone;
    }
    if (plan.lead == Lead::no) return as_client(plan);
    const rendezvous::Addresses addresses = addresses_of(loop, plan.endpoint.host);
    if (plan.lead == Lead::yes) return as_leader(loop, plan, addresses);
    const bool ours = std::any_of(addresses.begin(), addresses.end(),
                                  [&](const ip::address& a) { return is_ours(a, host); });
    if (!ours) return as_client(plan);
    auto point = as_leader(loop, plan, addresses);
    return point ? std::move(point) : as_client(plan);  // a second ddprun on that host is a client
}

}  // namespace ddprun::launcher
