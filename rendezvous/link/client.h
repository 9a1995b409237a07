// A node's side of the agent link: finds the rendezvous among several candidates, keeps one
// connection to it, and reports when that is lost. The agent decides what is said on it.
//
// connect() tries the candidates in order, again and again, until one answers the opening message
// (Hello) with one of our frames, or the deadline passes.
//
// - A refused connection is tried again: the peer may not be up yet. The pause is 1 ms and doubles
//   up to 50 ms.
// - A peer that sends something else, or does not answer within 5 s, is passed over: a stranger has
//   our port.
// - A rendezvous that refuses us is passed over while there are other candidates, for 30 s at most.
//   Then its Refused is delivered.
//
//   idle ──connect()──▶ calling ──first frame──▶ up ──end──▶ idle
//                          └──────deadline─────────────────────▲
//   close(): idle from everywhere, no callback
//
// Thread: the loop's. Callbacks come on the loop, never from within a call here, and none after
// close() or destruction. A callback may call everything, and may destroy the client.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "rendezvous/link/call_target.h"
#include "rendezvous/link/client_callbacks.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class Secrets;

class Client {
  public:
    using Callbacks = ClientCallbacks;

    // `secrets`, if given, must outlive the client. A rendezvous must then prove that it belongs to
    // this job's user (node_handshake.h); one that does not is passed over like a stranger, and
    // its refusal is logged. Its refusal is believed only by a node without any secret that has
    // never been accepted.
    Client(boost::asio::io_context& loop, Log log, Callbacks callbacks, Secrets* secrets = nullptr);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Starts, or replaces what is under way. `opening` is the first message on each connection;
    // with secrets it must be a Hello or an Inquire. `deadline` is a time of boot_now(), or kNever.
    // With `once` each candidate is called once; on_lost then says unavailable if nobody listens,
    // and closed if a connection ended without an answer.
    void connect(std::vector<CallTarget> candidates, ToLeader opening, Time deadline,
                 bool once = false);

    // Queues a message; never blocks. It is dropped while the link is not up: nothing is owed
    // between connections, because Join says everything again. If the peer has left 64 MiB unread,
    // the connection is lost.
    void send(const ToLeader& message);

    // Ends like close(), but the leader does not notice: the connection stays open in the returned
    // descriptor. The caller can wait there for the leader's end. -1 while not up.
    int part();

    // Ends the connection after sending what is queued (by itself, 2 s at most). No callback comes
    // any more.
    void close();

    bool is_up() const;
    // The socket, for the keeper to duplicate; -1 while not up. Never close or read it.
    int native_handle() const;
    // The frame that the keeper writes to this socket when we are gone. It is valid after whatever
    // we have sent.
    std::string gone_frame(const NodeId& node) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
