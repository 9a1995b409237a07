// The sessions of a service: the connection of each admitted node, and the leader's own node, which
// has no socket. What comes from them becomes an event of the machine; what the machine sends goes
// to them.
//
//   admit() ─▶ open ── the connection ends, or garbage comes ──▶ gone, with ConnectionLost
//               ├─ close() ──▶ leaving: its last messages go out ─▶ gone
//               └─ finish() ─▶ leaving ─ the node is ready, too ──▶ told: open as long as we are
//
// finish() is for the end of the job. A node takes the end of its connection for the sign to leave,
// so it comes with the end of this object, for all nodes at once.
//
// Thread: the loop's. Handlers and Deliver are called on the loop, never from within a call here,
// except that admit() passes on the first message at once. They may call everything, and may
// destroy this object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>

#include "base/log.h"
#include "rendezvous/link/link.h"
#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

class Sessions {
  public:
    using Deliver = std::function<void(const ToNode&)>;
    struct Handlers {
        std::function<void(const Event&)> on_event;  // Came or ConnectionLost
        // A connection that was leaving is over.
        std::function<void()> on_left;
    };

    // `loop` must outlive this object.
    Sessions(boost::asio::io_context& loop, Log log, Handlers handlers);
    ~Sessions();
    Sessions(const Sessions&) = delete;
    Sessions& operator=(const Sessions&) = delete;

    // The gate has admitted a node: from now on its frames are events of one session. A frame that
    // cannot be decoded closes this connection, with one log line.
    void admit(std::shared_ptr<Link> link, ToLeader first);
    // No effect if the session is lost; its event comes or has come.
    void send(Session session, const ToNode& message);
    void close(Session session);  // by the machine: no event comes any more

    void finish();                    // the job has ended
    bool all_left() const;            // no connection is leaving
    void give_up_leaving();           // cuts the connections that are leaving
    void cut();                       // cuts all connections; no handler is called any more
    std::size_t connections() const;  // open ones

    // The leader's own node (Service::open_local).
    Session open_local(Deliver deliver);
    void local_send(Session session, ToLeader message);  // posted; the order is kept
    void close_local(Session session);                   // posted: ConnectionLost

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
