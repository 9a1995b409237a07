// One port for several protocols: takes connections, looks at their first bytes without taking them
// (MSG_PEEK, opening.h), and hands each to the service that it asks for. It decides nothing else.
//
//   accept ─▶ silent ──first bytes──▶ node: Services::agent_link · c10d: Services::c10d
//               │                     stranger: closed, one line of the log
//               └──10 s without a whole opening──▶ closed; a silent one from an address that has a
//                                    live c10d connection goes to the store (torch 1.13 and 2.0
//                                    open a second one, which says nothing for life)
//
// What a caller does harms nobody else: at most Patience::most_silent may be silent at a time, the
// one that has been so longest makes room for a new one (who means it speaks at once); strangers
// and those closed are named once for each address; accept errors (no descriptor left) pause
// accepting and go on. A caller's Hello waits in the kernel; nothing is kept here for it.
//
// Thread: the loop's, callbacks too. They may destroy the endpoint.
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

    struct Services {
        // With nothing read from the socket: the Hello comes again as the link's first frame.
        std::function<void(Hello, Socket)> agent_link;
        std::function<void(Socket)>
            c10d;  // empty: not served, such callers are told apart in the log
        // Whether a c10d connection from there is open now.
        std::function<bool(const boost::asio::ip::address&)> has_c10d_from;
    };
    struct Patience {
        Duration silence = std::chrono::seconds{10};
        std::size_t most_silent = 4096;
    };

    // The acceptor is open, bound and listening.
    Endpoint(boost::asio::io_context& loop, Acceptor acceptor, Services services, Log log,
             Patience patience);
    ~Endpoint();  // closes the port and who is silent; those handed over are their services'
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    void start();
    std::size_t silent() const;

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
