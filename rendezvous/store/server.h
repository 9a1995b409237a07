// The worker store as a TCP server: takes connections, feeds their requests to the KeyValues, sends
// the replies.
//
// Everything happens on the thread that runs the acceptor's io_context, callbacks too; only
// contacts() may be called from any thread. Construct, start(), stop() and destroy on that thread,
// or while it does not run. The io_context must outlive the server. One connection's garbage,
// slowness or death closes that connection and no other. Names of peers are never looked up.
// Connections are never closed for being idle: workers stay silent for days.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/loop/accept_loop.h"
#include "rendezvous/store/key_values.h"
#include "rendezvous/store/network.h"
#include "rendezvous/store/session.h"

namespace ddprun::store {

struct ServerOptions {
    // Who may connect: addresses of all interfaces of the members. Nothing: anyone. IPv4 addresses
    // that arrive mapped into IPv6 count as IPv4, on both sides.
    std::optional<std::set<boost::asio::ip::address>> allowed;
    std::vector<Network> also_allowed;  // beside them
    Limits limits;
    // What clients without a greeting are taken for; legacy decides by how they send (see Dialect).
    Dialect legacy = Dialect::legacy;
    // A sentence for the operator: refused addresses (each once), closed connections and why,
    // accept errors. A peer that leaves between two requests, waiting or not, is not worth one.
    std::function<void(const std::string&)> log;
    // A connection has sent its first complete request; called after contacts() has grown.
    std::function<void()> on_contact;
};

// IPv4 out of a mapped IPv6 address, and link-local addresses without their interface.
boost::asio::ip::address plain_address(const boost::asio::ip::address& address);

class Server : private SessionOwner {
  public:
    // The acceptor is open, bound and listening.
    Server(boost::asio::ip::tcp::acceptor acceptor, ServerOptions options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    void start();
    // A connection that somebody else has accepted, with nothing read from it yet; the acceptor may
    // be closed then, and start() need not be called.
    void adopt(boost::asio::ip::tcp::socket socket);
    void stop();  // closes the listening socket and all connections; the destructor does it too

    // Connections that have ever sent a complete request. A worker makes at least one: torch 1.13
    // opens a second one, which stays silent and is not counted, and a worker that clones its store
    // counts again.
    std::uint64_t contacts() const { return contacts_.load(std::memory_order_relaxed); }
    std::size_t connections() const { return sessions_.size(); }
    bool has_connection_from(const boost::asio::ip::address& address) const;

  private:
    void admit(boost::asio::ip::tcp::socket socket, const boost::asio::ip::tcp::endpoint& peer);
    bool may_enter(const boost::asio::ip::address& address);
    bool has_room(const boost::asio::ip::tcp::endpoint& peer);

    void on_request(Session& session, Request& request) override;
    void after_requests() override;
    void on_end(Session& session, const std::string& why) override;
    std::span<char> read_buffer() override { return read_buffer_; }
    Memory& memory() override { return key_values_.memory(); }
    void note_contact(Session& session);
    void queue_replies(Session& asker);
    void queue_reply(Session& session, Reply& reply);
    bool takes_replies(Session& session);  // else it has been ended
    void log(const std::string& sentence) const;

    ServerOptions options_;
    KeyValues key_values_;
    std::unordered_map<ConnectionId, std::shared_ptr<Session>> sessions_;
    ConnectionId last_id_{0};
    std::set<boost::asio::ip::address> refused_;  // said so already
    std::atomic<std::uint64_t> contacts_{0};
    bool full_ = false;  // said so already
    std::vector<char> read_buffer_;
    std::vector<Reply> replies_;
    std::vector<std::shared_ptr<Session>> to_flush_;
    AcceptLoop accept_loop_;
};

}  // namespace ddprun::store
