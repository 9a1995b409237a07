// One worker's connection to the store: the socket, the decoder of its requests, the queue of
// replies that it has not taken yet.
//
// Runs on the server's thread only. Nothing here ever waits for this peer. Replies that it does not
// take stay queued. Above kPauseReadingAt nothing more is read from it. Above the server's limit
// the connection is closed.
//
// An idle session is small, because there may be thousands; the read buffer belongs to the owner.
// The server holds a shared_ptr, and so does a turn that is to come. After close() the owner is not
// called any more.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/loop/ready_sockets.h"
#include "base/system/unique_fd.h"
#include "store/protocol/protocol.h"

namespace ddprun::store {

class Session;

// What a session tells the server. Calls come on the server's thread, from within the session's own
// operations.
class SessionOwner {
  public:
    // A complete request; it may be moved from. False: it needs further turns, so it comes again
    // when the other connections had theirs.
    virtual bool on_request(Session& session, Request& request) = 0;
    // All requests of one read are served: now send the replies.
    virtual void after_requests() = 0;
    // The session has ended by itself. `why` is empty if the peer simply left.
    virtual void on_end(Session& session, const std::string& why) = 0;
    // A buffer for reading. The bytes in it are used up before the caller returns.
    virtual std::span<char> read_buffer() = 0;
    // Queued replies are counted into this.
    virtual Memory& memory() = 0;
    // Tells when a session can read or write.
    virtual ReadySockets& sockets() = 0;

  protected:
    ~SessionOwner() = default;
};

class Session : public std::enable_shared_from_this<Session>, private ReadySocket {
  public:
    static constexpr std::size_t kPauseReadingAt = 1 << 20;  // bytes queued

    Session(ConnectionId id, UniqueFd socket, const boost::asio::ip::tcp::endpoint& peer,
            const Limits& limits, Dialect legacy, SessionOwner& owner);
    ~Session() { close(); }

    void start();

    // queue() does not send. flush() sends what the socket takes, and continues by itself when it
    // takes more.
    void queue(Reply reply);
    void flush();
    std::size_t queued_bytes() const { return queued_bytes_; }

    // Both end the connection. close() is silent; end() tells the owner, at most once.
    void close();
    void end(const std::string& why);

    ConnectionId id() const { return id_; }
    const boost::asio::ip::tcp::endpoint& peer() const { return peer_; }
    bool closed() const { return !socket_; }
    bool made_contact = false;  // kept for the server: a complete request has come

  private:
    // Bytes to send, then the shared value.
    struct Piece {
        std::string bytes;
        SharedValue value;
    };

    void on_ready(bool readable, bool writable) override;
    bool may_read() const;
    void wait();
    void read();
    bool read_once();
    void serve(std::string_view bytes, std::size_t burst);
    void serve_later(std::string_view bytes, std::size_t burst);
    bool write_pieces();
    void failed(int error);
    void discard(std::size_t sent);
    void forget_output();
    void left();

    ConnectionId id_;
    UniqueFd socket_;
    boost::asio::ip::tcp::endpoint peer_;
    Decoder decoder_;
    SessionOwner& owner_;
    std::vector<Piece> output_;
    std::size_t front_ = 0;       // output_[front_] is the first piece that is not completely sent
    std::size_t front_sent_ = 0;  // bytes of that piece that are sent
    std::size_t queued_bytes_ = 0;
    std::size_t built_ = 0;       // bytes of replies that were built in this turn of the loop
    bool later_ = false;          // a turn to serve what has been read is to come
    bool writing_ = false;        // the socket takes no more now
    bool unfinished_ = false;     // the request needs another turn
    bool peer_finished_ = false;  // the peer sends no more; what is queued is still sent
};

}  // namespace ddprun::store
