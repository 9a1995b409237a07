// A node's side of the agent link: finds the rendezvous among candidates, keeps one connection to
// it, and says when it is lost. What is said on it is the agent's business.
//
// connect() tries the candidates in order, again and again, until one answers the opening message
// (Hello) with a frame of ours, or the deadline passes. A refused connect is tried again after 1
// ms, doubling up to 50 ms for each round: the peer is not up yet. A peer that takes the connection
// and answers with something else, or not within 5 s, is passed over (a stranger on our port); so
// is a rendezvous that refuses us, while there are other candidates, for 30 s at most: then its
// Refused is delivered.
//
//   idle ──connect()──▶ calling ──first frame──▶ up ──end──▶ idle
//                          └──────deadline─────────────────────▲
//   close(): idle from everywhere, no callback
//
// Thread: the loop's. Callbacks come on the loop, never from within a call here, and none after
// close() or destruction; in them everything may be called, destruction included.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

struct CallTarget {
    std::string host;  // name or address
    std::uint16_t port = 0;
    std::string if_unknown = {};  // its address, as far as known, for where nobody knows the name
    bool operator==(const CallTarget&) const = default;
};

class Secrets;

class Client {
  public:
    struct Callbacks {
        // The rendezvous has answered; `local_address` is the one from which we reached it (the
        // address to offer). The answer itself follows as the first on_message.
        std::function<void(const std::string& local_address)> on_up;
        std::function<void(const ToNode&)> on_message;
        // The link is idle again. closed: an established connection ended; unavailable:
        // the one try that was to be made failed; timed_out: nobody answered by the deadline; malformed: what came was not of our protocol. The sentence says
        // who, and what the last tries met.
        std::function<void(const Error&)> on_lost;
    };

    // `secrets`, if any, outlive the client: a rendezvous must then prove that it is of this job's
    // user (node_handshake.h), and one that does not is passed over like a stranger. Its refusal is
    // believed as long as we have never met one that did.
    Client(boost::asio::io_context& loop, Log log, Callbacks callbacks, Secrets* secrets = nullptr);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // From idle, or instead of what there is. `opening` is sent on each connection first; with
    // secrets it is a Hello or an Inquire. `deadline` is a point of boot_now(); kNever: try for
    // ever. once: each candidate is called only once; on_lost then says unavailable where nobody
    // listens, closed where a connection ended without an answer.
    void connect(std::vector<CallTarget> candidates, ToLeader opening, Time deadline,
                 bool once = false);

    // Queued, never blocks. Dropped while not up (nothing is owed between connections; Join says it
    // all again) and with a peer that has not read 64 MiB: that connection is then lost.
    void send(const ToLeader& message);

    // Ends as by close(), but the leader does not hear it: the connection stays open behind this
    // descriptor, for who waits for the leader's end. -1 while not up.
    int part();

    // Sends what is queued (for 2 s at most, by itself), then ends the connection; no callback
    // comes any more.
    void close();

    bool is_up() const;
    // The socket, for the keeper's duplicate; -1 while not up. Never close or read it.
    int native_handle() const;
    // What the keeper writes there when we are gone: right after whatever we have sent.
    std::string gone_frame(const NodeId& node) const;

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
