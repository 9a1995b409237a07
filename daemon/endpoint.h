// One port for several protocols. It accepts connections, looks at their first bytes without
// consuming them (MSG_PEEK, first_bytes.h), and passes each one to the service that it asks for. It
// decides nothing else.
//
//   accept ─▶ silent ──first bytes──▶ node: Services::agent_link · c10d: Services::c10d
//               │                     stranger: closed, one line of the log
//               └──10 s without a whole opening──▶ closed; a silent one from an address that has a
//                                    live c10d connection goes to the store (torch 1.13 and 2.0
//                                    open a second one, which says nothing for life)
//
// A bad caller affects nobody else. At most Patience::most_silent callers may be silent at a time;
// the one that has been silent longest makes room for a new one, because a real client speaks at
// once. Callers that are turned away are logged once for each address. Accept errors (no descriptor
// left) pause accepting. A caller's first bytes stay in the kernel, so nothing is stored here.
//
// Thread: the loop's, callbacks too. A callback may destroy the endpoint.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>

#include "base/log.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class Endpoint {
  public:
    using Socket = boost::asio::ip::tcp::socket;
    using Acceptor = boost::asio::ip::tcp::acceptor;

    // Who takes the connections. Nothing has been read from a socket that is passed on.
    struct Services {
        // A node. Its Hello was only looked at and comes again as the link's first frame.
        std::function<void(Socket)> agent_link;
        // A client of PyTorch's store. Empty: not served, and such callers get a log line of their
        // own.
        std::function<void(Socket)> c10d;
        // Whether there is an open c10d connection from this address.
        std::function<bool(const boost::asio::ip::address&)> has_c10d_from;
    };
    struct Patience {
        Duration silence = std::chrono::seconds{10};  // for a caller's whole first message
        std::size_t most_silent = 4096;               // callers at a time
    };

    // The acceptor must be open, bound and listening.
    Endpoint(boost::asio::io_context& loop, Acceptor acceptor, Services services, Log log,
             Patience patience);
    ~Endpoint();  // closes the port and silent callers; those passed on belong to their services
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    void start();
    std::size_t silent() const;  // callers that have not been passed on yet

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
