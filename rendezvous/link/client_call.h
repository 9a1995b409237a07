// One call of a client (client.h): the search for a rendezvous among the candidates, as a
// coroutine, and the connection that comes of it. Each connect() makes a call of its own, so
// nothing of an old connection can be taken for the new one's.
//
//   calling ──first message──▶ up ──end──▶ over
//      └──────deadline──────────────────────▲
//   stop(): over from everywhere, no callback
//
// Thread: the loop's. Must be made by make_shared; its coroutine keeps it alive while it searches.
// Callbacks come on the loop. They may stop this call and let go of it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "rendezvous/link/call_patience.h"
#include "rendezvous/link/call_target.h"
#include "rendezvous/link/client_callbacks.h"
#include "rendezvous/link/link.h"
#include "rendezvous/link/node_handshake.h"

namespace ddprun::rendezvous {

class Secrets;

class ClientCall : public std::enable_shared_from_this<ClientCall> {
  public:
    // The arguments of Client::connect().
    struct Order {
        std::vector<CallTarget> candidates;
        ToLeader opening;
        Time deadline = kNever;
        bool once = false;
    };

    // `log` gets the refusals of unproven leaders, each as often as it comes, and a word on a call
    // without answer. `has_met`: a rendezvous has accepted this node in an earlier call. The
    // refusal of one that proves nothing is then not believed.
    ClientCall(boost::asio::io_context& loop, Log log, ClientCallbacks callbacks, Order order,
               Secrets* secrets, bool has_met);

    void start();
    // Ends without a callback. What is queued on a link that is up is still sent.
    void stop();

    // The connection; null while it is not up. Valid until the loop runs on.
    Link* link() const { return phase_ == Phase::up ? link_.get() : nullptr; }
    // Whether a rendezvous has accepted this node, in this call or before.
    bool has_met() const { return has_met_; }

  private:
    using tcp = boost::asio::ip::tcp;
    enum class Phase { calling, up, over };

    boost::asio::awaitable<void> find();
    boost::asio::awaitable<void> try_candidate(CallTarget candidate);
    boost::asio::awaitable<void> try_address(CallTarget candidate,
                                             boost::asio::ip::address address);
    boost::asio::awaitable<boost::system::error_code> connect(tcp::socket& socket,
                                                              tcp::endpoint to);
    boost::asio::awaitable<void> ask(tcp::socket socket);
    void begin();
    void handshake_failed(const Error& why);
    void frame_came(std::string_view body);
    void message_came(std::string_view body);
    void link_ended(const Error& why);
    void come_up(const ToNode& first);
    void lose(Error why);
    bool goes_on() const;
    Duration left(Duration limit) const;

    boost::asio::io_context& loop_;
    const Log log_;
    const ClientCallbacks callbacks_;
    const std::vector<CallTarget> candidates_;
    const ToLeader opening_;
    Secrets* const secrets_;
    bool has_met_;
    bool guess_ = false;  // the candidate that is being asked is a guess
    CallPatience patience_;
    Phase phase_ = Phase::calling;
    boost::asio::steady_timer pause_;     // between two rounds
    boost::asio::steady_timer answered_;  // cancelled when the link has answered or ended
    std::shared_ptr<Link> link_;
    std::optional<NodeHandshake> handshake_;  // on that link
    std::shared_ptr<tcp::socket> connecting_;
};

}  // namespace ddprun::rendezvous
