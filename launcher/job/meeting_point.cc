// Binds the port where the nodes meet, or finds out that another node has it.
#include "launcher/job/meeting_point.h"

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <iterator>

#include "base/loop/resolve.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::launcher {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
namespace ip = boost::asio::ip;

// A job may start again right after its ddprun was killed. The keeper of that ddprun still holds
// the port until its last worker is gone, so the port is tried for 2 s.
constexpr int kPortTries = 100;
constexpr auto kPortPause = std::chrono::milliseconds{20};
constexpr auto kResolveLimit = std::chrono::seconds{10};

Result<tcp::acceptor> try_listen(boost::asio::io_context& loop, const tcp::endpoint& endpoint) {
    tcp::acceptor acceptor(loop);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    // One IPv6 socket that takes IPv4 connections, too, serves both kinds of clients.
    if (!error && endpoint.protocol() == tcp::v6()) acceptor.set_option(ip::v6_only(false), error);
    // Without this, connections in TIME_WAIT from an earlier run would block the port for a minute.
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error)
        return Error(ErrorCode::unavailable,
                     "port " + std::to_string(endpoint.port()) + ": " + error.message());
    return acceptor;
}

Result<Addresses> look_up(boost::asio::io_context& loop, const std::string& host) {
    std::optional<Result<Addresses>> found;
    ddprun::resolve(loop, host, kResolveLimit,
                    [&](Result<Addresses> result) { found = std::move(result); });
    while (!found) {
        if (loop.stopped()) loop.restart();
        loop.run_one();
    }
    return std::move(*found);
}

// An unknown name is not an error here: it only means that the name proves nothing.
Addresses addresses_of(boost::asio::io_context& loop, const std::string& host) {
    const auto found = look_up(loop, host);
    return found ? *found : Addresses{};
}

// Where to listen if the endpoint is this host's loopback. A name may have several such addresses;
// all nodes try each, and IPv4 is there on every host.
ip::address loopback_of(const Addresses& addresses) {
    const auto v4 = std::ranges::find_if(addresses, [](const ip::address& a) { return a.is_v4(); });
    return v4 == addresses.end() ? addresses.front() : *v4;
}

bool is_ours(const ip::address& address, const HostFacts& host) {
    const auto& own = host.local_addresses;
    return address.is_loopback() ||
           std::find(own.begin(), own.end(), address.to_string()) != own.end();
}

// A node that does not lead at first still listens, because its own service may lead later. Under
// Slurm, with one ddprun on a host, it tries the ports of the endpoint. Elsewhere those are left to
// the leader: leader and client may be on one machine.
Result<MeetingPoint> as_client(boost::asio::io_context& loop, const Plan& plan) {
    MeetingPoint point;
    std::vector<int> ports = plan.service_ports;
    ports.push_back(0);
    for (const int port : ports) {
        auto listener = listen_on(loop, port);
        if (listener) {
            point.listener = std::move(*listener);
            break;
        }
        // Port 0, any free one, comes last. If even that fails, no port can be bound at all.
        if (port == 0) return listener.error();
    }
    for (const int port : plan.endpoint.ports)
        point.candidates.push_back(
            {plan.endpoint.host, static_cast<std::uint16_t>(port), plan.endpoint.if_unknown});
    return point;
}

// More names cost each round of calls more time, and a job that has lost eight nodes before its
// first generation has other problems.
constexpr std::size_t kOthersCalled = 8;
// A service takes the first port of the step that is free, in nearly all cases one of these.
constexpr std::size_t kPortsCalled = 2;

Result<MeetingPoint> as_leader(boost::asio::io_context& loop, const Plan& plan,
                               const Addresses& addresses, const HostFacts& host) {
    MeetingPoint point;
    point.leads = true;
    // All addresses of the name are loopback, or it has none.
    const bool says_nothing = std::all_of(addresses.begin(), addresses.end(),
                                          [](const ip::address& a) { return a.is_loopback(); });
    // Debian's /etc/hosts gives a host's own name a loopback address, and a container may not know
    // the name at all. So a loopback address proves nothing about whether the other nodes of a step
    // are on this host.
    const bool several_hosts = std::ranges::any_of(plan.limits.order, [&](const auto& node) {
        return rendezvous::host_of(node) != rendezvous::host_of(plan.limits.order.front());
    });
    // The user gave a loopback endpoint and all nodes are here: no port is opened to the network.
    std::optional<ip::address> loopback;
    if (!several_hosts && says_nothing && !addresses.empty()) loopback = loopback_of(addresses);
    if (several_hosts && says_nothing &&
        std::ranges::count(host.local_addresses, plan.endpoint.if_unknown) > 0)
        point.address = plan.endpoint.if_unknown;
    Error last;
    boost::asio::steady_timer pause(loop);
    // Where the address decides who leads, a port that is taken means that another ddprun of this
    // host leads, so it is tried once.
    for (int tries = plan.lead == Lead::yes ? kPortTries : 1; tries > 0; --tries) {
        for (const int port : plan.endpoint.ports) {
            auto listener = listen_on(loop, port, loopback);
            if (listener) {
                point.listener = std::move(*listener);
                return point;
            }
            last = listener.error();
        }
        pause.expires_after(kPortPause);
        pause.wait();  // blocking is harmless: nothing else runs on this loop yet
    }
    return Error(ErrorCode::unavailable,
                 "cannot open the rendezvous on " + plan.node_name + ", " + last.sentence() +
                     "; choose another port with --rdzv-endpoint=HOST:PORT or --ports=FROM-TO");
}

}  // namespace

Result<tcp::acceptor> listen_on(boost::asio::io_context& loop, int port,
                                const std::optional<ip::address>& loopback) {
    const auto number = static_cast<std::uint16_t>(port);
    if (loopback) return try_listen(loop, {*loopback, number});
    auto both = try_listen(loop, {tcp::v6(), number});  // IPv4 as well
    return both ? std::move(both) : try_listen(loop, {tcp::v4(), number});
}

namespace {

// Whether the endpoint is the host on which srun was called, and that is none of the step's. A
// batch script calls srun on the first node of the job, a login shell elsewhere. A name that nobody
// knows proves nothing.
bool starts_steps_only(boost::asio::io_context& loop, const slurm::Allocation& allocation,
                       const std::string& endpoint, const HostFacts& host) {
    const std::string& caller = allocation.launch_node_address;
    const auto is_caller = [&](const ip::address& address) {
        return address.to_string() == caller;
    };
    if (caller.empty() || std::ranges::count(host.local_addresses, caller) > 0) return false;
    if (std::ranges::count(allocation.nodes, endpoint) > 0 ||
        std::ranges::count(allocation.job_nodes, endpoint) > 0)
        return false;
    if (endpoint != caller && std::ranges::none_of(addresses_of(loop, endpoint), is_caller))
        return false;
    Addresses first = addresses_of(loop, allocation.nodes.front());
    const std::vector<std::string>& job = allocation.job_nodes;
    if (!job.empty() && job.front() != allocation.nodes.front())
        std::ranges::copy(addresses_of(loop, job.front()), std::back_inserter(first));
    return !first.empty() && std::ranges::none_of(first, is_caller);
}

}  // namespace

std::vector<std::string> addresses_outside_step(const slurm::Allocation& allocation,
                                                const std::string& endpoint,
                                                const HostFacts& host) {
    std::vector<std::string> texts;
    boost::asio::io_context loop;
    // The batch script runs on the first node of the job.
    const std::vector<std::string>& job = allocation.job_nodes;
    if (!job.empty() && std::ranges::count(allocation.nodes, job.front()) == 0)
        for (const ip::address& address : addresses_of(loop, job.front()))
            texts.push_back(address.to_string());
    if (starts_steps_only(loop, allocation, endpoint, host)) texts.push_back(endpoint);
    return texts;
}

bool is_unknown_host(const std::string& name, const slurm::Allocation& allocation) {
    const auto is = [&name](const std::string& node) {
        return node.substr(0, node.find('.')) == name.substr(0, name.find('.'));
    };
    if (std::ranges::any_of(allocation.nodes, is) || std::ranges::any_of(allocation.job_nodes, is))
        return false;
    boost::asio::io_context loop;
    const auto found = look_up(loop, name);
    return !found && found.error().code() == ErrorCode::not_found;
}

std::vector<rendezvous::Peer> others_of_step(const Plan& plan) {
    std::vector<rendezvous::Peer> others;
    // With several tasks on a host their ports are not known here.
    if (plan.task) return others;
    const auto& ports = plan.endpoint.ports;
    std::size_t called = 0;
    for (const std::string& name : plan.limits.order) {
        if (name == plan.node_name || name == plan.endpoint.host) continue;
        if (++called > kOthersCalled) break;
        for (std::size_t i = 0; i < std::min(ports.size(), kPortsCalled); ++i)
            others.push_back({{name, {}}, name, static_cast<std::uint16_t>(ports[i])});
    }
    return others;
}

std::vector<rendezvous::Peer> rivals_of_step(const Plan& plan) {
    std::vector<rendezvous::Peer> rivals;
    for (rendezvous::Peer& other : others_of_step(plan))
        if (rivals.empty() || rivals.back().node != other.node) rivals.push_back(std::move(other));
    return rivals;
}

Result<MeetingPoint> open_meeting_point(boost::asio::io_context& loop, const Plan& plan,
                                        const HostFacts& host) {
    if (meets_nobody(plan)) {
        MeetingPoint alone;
        alone.leads = true;
        // It listens for operators only, who find it by its ledger, or by its pointer
        // (pointer_file.h) where the user has asked for a ledger in memory. The ports that the user
        // has named are left to the workers' store.
        const bool found = is_shared(plan.ledger.place) || plan.ledger.chosen;
        const bool answers =
            !plan.check && found && plan.identity.mode != rendezvous::IdentityMode::none;
        if (answers)
            if (auto listener = listen_on(loop, 0)) alone.listener = std::move(*listener);
        return alone;
    }
    if (plan.lead == Lead::no) return as_client(loop, plan);
    // Lead::yes needs the addresses, too: they tell whether loopback is enough.
    const Addresses addresses = addresses_of(loop, plan.endpoint.host);
    if (plan.lead == Lead::yes) return as_leader(loop, plan, addresses, host);
    const bool ours = std::any_of(addresses.begin(), addresses.end(),
                                  [&](const ip::address& a) { return is_ours(a, host); });
    if (!ours) return as_client(loop, plan);
    auto point = as_leader(loop, plan, addresses, host);
    return point ? std::move(point)
                 : as_client(loop, plan);  // a second ddprun on a host joins as a client
}

}  // namespace ddprun::launcher
