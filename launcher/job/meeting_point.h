// Where the nodes meet, made real: decides with a look at this host's addresses and ports whether
// this node leads, binds the port if it does, and names the candidates if it does not. Shell.
// Thread: the loop's, before anything else runs on it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/plan.h"
#include "rendezvous/link/client.h"

namespace ddprun::launcher {

struct MeetingPoint {
    bool leads = false;
    // The leader's, where its name says nothing to others; else they know it by its name.
    std::optional<std::string> address;
    std::optional<boost::asio::ip::tcp::acceptor>
        listener;  // of this node's own service, in a job of several nodes
    std::vector<rendezvous::CallTarget> candidates;  // where the leader may be, for the others
};

// Runs `loop` while a name is looked up. Possible errors: unavailable (the port is in use, nobody
// has the address).
Result<MeetingPoint> open_meeting_point(boost::asio::io_context& loop, const Plan& plan,
                                        const HostFacts& host);

// The addresses of the job's first node, which runs the batch script, if the step is not on it:
// what `hostname --ip-address` printed there. Empty where it is, which is nearly always.
std::vector<std::string> addresses_outside_step(const slurm::Allocation& allocation);

// A socket that is bound and listening: on loopback only, or on all addresses. Port 0: any free
// one. Possible errors: unavailable, with the port and why.
Result<boost::asio::ip::tcp::acceptor> listen_on(boost::asio::io_context& loop, int port,
                                                 bool loopback_only);

}  // namespace ddprun::launcher
