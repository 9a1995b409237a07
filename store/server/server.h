// The worker store as a TCP server: accepts connections, gives their requests to KeyValues, sends
// the replies.
//
// Connections are accepted and asked for on the acceptors' io_context, and served in the turns of
// sockets(). Whoever owns the server makes both run: with sockets().follow(), or in a thread like
// store_thread.cc, where it is woken for either.
//
// Thread: everything happens on that one thread, callbacks too. Only contacts(), last_request(),
// stop_timing(), operations() and waiters() may be called from any thread. Construct, start(),
// stop() and destroy on that thread, or while it does not run. The io_context must outlive the
// server.
//
// Garbage, slowness or death of one connection closes that connection and no other. Names of peers
// are never looked up. A connection is never closed for being idle: workers are silent for days.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/loop/accept_loop.h"
#include "base/loop/ready_sockets.h"
#include "base/time.h"
#include "store/door/door.h"
#include "store/server/key_values.h"
#include "store/server/session.h"

namespace ddprun::store {

// Who may connect, the limits, and what to report.
struct ServerOptions {
    WhoMayEnter who;
    Limits limits;
    // The dialect of clients without a greeting; `legacy` decides by how they send (see Dialect).
    Dialect legacy = Dialect::legacy;
    // Gets a sentence for the operator: refused addresses (each once), closed connections with the
    // reason, accept errors. A peer that leaves between two requests is not reported, waiting or
    // not.
    std::function<void(const std::string&)> log;
    // Called when a connection has sent its first complete request, after contacts() has grown, and
    // when a process has arrived: with processes().
    std::function<void(std::uint64_t processes)> on_contact;
};

class Server : private SessionOwner {
  public:
    using Acceptors = std::vector<boost::asio::ip::tcp::acceptor>;
    // The acceptors, one at least and of one io_context, must be open, bound and listening. Throws
    // std::system_error if there is no descriptor for sockets().
    Server(Acceptors acceptors, ServerOptions options);
    Server(boost::asio::ip::tcp::acceptor acceptor, ServerOptions options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    void start();
    // Takes over a connection that somebody else has accepted; nothing may have been read from it.
    // In this case the acceptors may be closed, and start() need not be called.
    void adopt(boost::asio::ip::tcp::socket socket);
    void stop();  // closes listening sockets and connections; the destructor does this, too

    ReadySockets& sockets() override { return sockets_; }
    // Whether something of the io_context waits for its time now: callers that are asked for, or
    // the pause after an error of accept().
    bool waits_for_time() const;

    // A member's answer to WhoMayEnter::ask.
    void owners_said(const OwnersSaid& said) { door_.owners_said(said); }

    // Sets a key as a client would, from this process. `key` begins with "/" where users of PyTorch
    // are to find it without. In a store that is full nothing happens.
    void set(std::string key, std::string value);

    // The number of connections that have ever sent a complete request. A worker makes at least
    // one. The second, silent connection of torch 1.13 does not count; a clone of a worker's store
    // does.
    std::uint64_t contacts() const { return contacts_.load(std::memory_order_relaxed); }
    // The number of processes that have met here. A torch process adds 1 to the key kArrivalKey
    // once its store is connected, in 1.13 and in 2.x. Where nobody does so, each connection counts
    // as a process. Its own thread only.
    std::uint64_t processes() const { return arrivals_ > 0 ? arrivals_ : contacts(); }
    // When the last request came. Callable from any thread.
    Time last_request() const { return Time{Duration{last_request_.load()}}; }
    // Nobody wants to know it any more; it costs a look at the clock each time. Callable from any
    // thread.
    void stop_timing() { timing_ = false; }
    // How many requests have come, and how many connections wait for a key now. Callable from any
    // thread.
    std::int64_t operations() const { return operations_.load(std::memory_order_relaxed); }
    std::int64_t waiters() const { return waiters_.load(std::memory_order_relaxed); }
    std::size_t connections() const { return sessions_.size(); }
    bool has_connection_from(const boost::asio::ip::address& address) const;

  private:
    void take(boost::asio::ip::tcp::socket socket, const boost::asio::ip::tcp::endpoint& peer);
    void admit(boost::asio::ip::tcp::socket socket, const boost::asio::ip::tcp::endpoint& peer);
    std::uint64_t taken() const { return sessions_.size() + door_.waiting(); }
    Error no_place() const;
    bool has_room(const boost::asio::ip::tcp::endpoint& peer);

    bool on_request(Session& session, Request& request) override;
    void after_requests() override;
    void on_end(Session& session, const std::string& why) override;
    std::span<char> read_buffer() override { return read_buffer_; }
    Memory& memory() override { return key_values_.memory(); }
    void note_contact(Session& session, const Request& request);
    void queue_replies(Session* asker);
    void queue_reply(Session& session, Reply& reply);
    bool takes_replies(Session& session);  // false: it has been closed
    void log_end(const std::string& peer, const std::string& why);
    void log(const std::string& sentence) const;
    void count_waiters();

    ServerOptions options_;
    KeyValues key_values_;
    ReadySockets sockets_;  // declared before the sessions, which leave it when they end
    std::unordered_map<ConnectionId, std::shared_ptr<Session>> sessions_;
    ConnectionId last_id_{0};
    std::atomic<std::uint64_t> contacts_{0};
    std::atomic<bool> timing_{true};
    std::atomic<Duration::rep> last_request_{0};
    // Written by the loop's thread only.
    std::atomic<std::int64_t> operations_{0}, waiters_{0};
    std::uint64_t arrivals_ = 0;     // of processes that say so
    bool full_ = false;              // already reported
    Time minute_ends_{};             // the minute whose ended sessions are counted
    int ends_in_minute_ = 0;         // sessions that did not end in good order
    std::uint64_t descriptors_ = 0;  // that this process may have
    // Shared by all sessions, since they read one after the other.
    std::vector<char> read_buffer_;
    std::vector<Reply> replies_;
    std::vector<std::shared_ptr<Session>> to_flush_;
    Door door_;
    std::deque<AcceptLoop> accept_loops_;
};

}  // namespace ddprun::store
