// Decides whether this node leads at the start, by this host's addresses and ports. If it leads, it
// binds the port where the nodes meet. If not, it lists where the leader may be. Shell.
//
// Thread: the loop's, before anything else runs on it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/host_facts.h"
#include "launcher/plan/plan.h"
#include "rendezvous/link/client.h"
#include "rendezvous/model/model.h"
#include "slurm/allocation.h"

namespace ddprun::launcher {

// What open_meeting_point() found out and opened.
struct MeetingPoint {
    bool leads = false;
    // The leader's address, if the other hosts cannot resolve its name. Empty: they know it by its
    // name.
    std::optional<std::string> address;
    std::optional<boost::asio::ip::tcp::acceptor>
        listener;  // of this node's own service; in a job of one node for operators, or empty
    // Where to look for the leader, if this node does not lead.
    std::vector<rendezvous::CallTarget> candidates;
};

// Runs `loop` while a name is looked up. Possible errors: unavailable (the port is in use).
Result<MeetingPoint> open_meeting_point(boost::asio::io_context& loop, const Plan& plan,
                                        const HostFacts& host);

// Other nodes of the step, for a node that reaches nobody at the endpoint: where their own services
// are likely to listen. If the first leader is lost before there is a generation, no ledger names
// anybody yet, and one of the first of these leads. They have no incarnation, since nobody has said
// that they are there. None outside a step.
std::vector<rendezvous::Peer> others_of_step(const Plan& plan);

// The same, each at the first port only: for a leader that is not sure to be the only one.
std::vector<rendezvous::Peer> rivals_of_step(const Plan& plan);

// Addresses of hosts that start steps and are no node of this one; mostly none. A script may have
// passed one as endpoint, where nobody of the step would listen: that of the node that runs the
// batch script (`hostname --ip-address`), and that of the login node on which srun was called, if
// the endpoint is $SLURM_LAUNCH_NODE_IPADDR.
std::vector<std::string> addresses_outside_step(const slurm::Allocation& allocation,
                                                const std::string& endpoint, const HostFacts& host);

// Whether a name that the user has given as endpoint belongs to no host at all, as far as this one
// knows. A node of the job needs no name here, and a name server that does not answer proves
// nothing.
bool is_unknown_host(const std::string& name, const slurm::Allocation& allocation);

// A listening socket: on this loopback address only, or on all addresses. Port 0 takes any free
// port. Possible errors: unavailable, with the port and the reason.
Result<boost::asio::ip::tcp::acceptor> listen_on(
    boost::asio::io_context& loop, int port,
    const std::optional<boost::asio::ip::address>& loopback = {});

}  // namespace ddprun::launcher
