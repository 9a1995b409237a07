// One worker's connection to the store: its socket, the decoder of what it sends, the queue of what
// it has not taken yet.
//
// Runs on the server's loop thread only. The socket is non-blocking; nothing here ever waits for
// this peer: output that it does not take stays queued, past kPauseReadingAt nothing more is read
// from it, and past the server's limit it is closed. An idle one is small, for there may be
// thousands: buffers are the owner's. Ownership: the server holds a shared_ptr, and
// so does each pending operation; after close() no call to the owner happens.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/store/protocol.h"

namespace ddprun::store {

class Session;

// What a session tells the server. Calls come from within the session's own operations, on the loop
// thread.
class SessionOwner {
  public:
    virtual void on_request(Session& session, Request& request) = 0;
    // All that one read has brought is served: time to send.
    virtual void after_requests() = 0;
    // The session has ended by itself; `why` is empty when the peer simply left.
    virtual void on_end(Session& session, const std::string& why) = 0;
    // Where any session may read into: used up before the call that asked for it returns.
    virtual std::span<char> read_buffer() = 0;
    // What is queued counts into it.
    virtual Memory& memory() = 0;

  protected:
    ~SessionOwner() = default;
};

class Session : public std::enable_shared_from_this<Session> {
  public:
    static constexpr std::size_t kPauseReadingAt = 1 << 20;  // bytes queued

    Session(ConnectionId id, boost::asio::ip::tcp::socket socket,
            const boost::asio::ip::tcp::endpoint& peer, const Limits& limits, Dialect legacy,
            SessionOwner& owner);

    void start();

    // Queues without sending; flush() sends what the socket takes and goes on by itself when it
    // takes more.
    void queue(Reply reply);
    void flush();
    std::size_t queued_bytes() const { return queued_bytes_; }

    // Ends the connection. close() is silent; end() tells the owner, at most once.
    void close();
    void end(const std::string& why);

    ConnectionId id() const { return id_; }
    const boost::asio::ip::tcp::endpoint& peer() const { return peer_; }
    bool closed() const { return !socket_.is_open(); }
    bool made_contact = false;  // the server's note: a complete request has come

  private:
    struct Piece {
        std::string bytes;
        SharedValue value;
    };

    void wait_readable();
    void wait_writable();
    void read();
    bool read_once();
    void serve(std::string_view bytes, bool burst_ends);
    void write_pieces(boost::system::error_code& error);
    void discard(std::size_t sent);
    void forget_output();
    void left();

    ConnectionId id_;
    boost::asio::ip::tcp::socket socket_;
    boost::asio::ip::tcp::endpoint peer_;
    Decoder decoder_;
    SessionOwner& owner_;
    std::vector<Piece> output_;
    std::size_t front_ = 0;       // those before it in output_ are sent
    std::size_t front_sent_ = 0;  // of that one
    std::size_t queued_bytes_ = 0;
    bool reading_ = false;  // an operation is pending
    bool writing_ = false;
    bool peer_finished_ = false;  // end of its bytes; what is queued still goes out
};

}  // namespace ddprun::store
