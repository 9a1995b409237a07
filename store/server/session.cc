// Reading requests from one connection and writing its replies, without ever waiting for it.
#include "store/server/session.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace ddprun::store {
namespace {

// Reads in a row from one connection, before the other connections get their turn.
constexpr int kReadsInARow = 8;
// The same for writing: a fast reader of a large value would otherwise take the loop for itself.
constexpr std::size_t kWriteInARow = 4 << 20;
// Bytes of replies that are built for one connection in a row. A byte asks for a list of all keys,
// so a single read may hold hours of work. (Large values are shared, and cost nothing.)
constexpr std::size_t kBuildInARow = 4 << 20;
// The number of buffers in one gathered write; and the size up to which a piece is joined with the
// next one.
constexpr std::size_t kBuffersAWrite = 32;
constexpr std::size_t kJoinUpTo = 16 << 10;
constexpr std::size_t kPiecesToKeep = 4;  // capacity that an idle session may keep

// Signals are blocked in the store's thread; in another they are nothing to end a connection for.
bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Peers often leave without a good-bye: workers are killed.
bool peer_left(int error) { return error == ECONNRESET || error == EPIPE; }

void switch_on(int socket, int level, int option) {
    const int on = 1;
    (void)::setsockopt(socket, level, option, &on, sizeof on);  // it only improves a connection
}

}  // namespace

Session::Session(ConnectionId id, UniqueFd socket, const boost::asio::ip::tcp::endpoint& peer,
                 const Limits& limits, Dialect legacy, SessionOwner& owner)
    : id_(id),
      socket_(std::move(socket)),
      peer_(peer),
      decoder_(limits, legacy, &owner.memory()),
      owner_(owner) {}

void Session::start() {
    switch_on(socket_.get(), IPPROTO_TCP, TCP_NODELAY);
    // Keep-alive finds peers whose host has died. Without it their connections would stay for ever.
    switch_on(socket_.get(), SOL_SOCKET, SO_KEEPALIVE);
    wait();
}

// A peer that does not take its replies is not read from, so it cannot cause more of them.
bool Session::may_read() const {
    return !later_ && !peer_finished_ && queued_bytes_ <= kPauseReadingAt && !closed();
}

// Tells the kernel what to wait for, where that has changed.
void Session::wait() {
    if (closed()) return;
    const std::uint32_t events = (may_read() ? EPOLLIN : 0u) | (writing_ ? EPOLLOUT : 0u);
    const std::error_code error = owner_.sockets().want(*this, socket_.get(), events);
    if (error) end("cannot be waited for: " + error.message());
}

void Session::on_ready(bool readable, bool writable) {
    const auto self = shared_from_this();  // it may end here
    if (writable && std::exchange(writing_, false)) flush();
    if (readable && may_read()) read();
}

void Session::read() {
    for (int i = 0; i < kReadsInARow; ++i) {
        if (!read_once()) break;
    }
    wait();
}

// Reads once and serves what has come. Returns whether there may be more to read at once.
bool Session::read_once() {
    const std::span<char> room = owner_.read_buffer();
    const ssize_t got = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (got < 0 && would_block(errno)) return false;
    // The peer may have closed only its sending half; it still gets its replies.
    if (got == 0 && queued_bytes_ > 0) {
        peer_finished_ = true;
        return false;
    }
    if (got <= 0) {
        got == 0 ? left() : failed(errno);
        return false;
    }
    // A read that does not fill the buffer has emptied the socket: the peer has paused.
    const std::size_t bytes = static_cast<std::size_t>(got);
    const bool burst_ends = bytes < room.size();
    serve({room.data(), bytes}, burst_ends ? bytes : 0);
    return !burst_ends && may_read();
}

// `burst`: how many bytes came together, if the peer has paused behind them; else 0.
void Session::serve(std::string_view bytes, std::size_t burst) try {
    built_ = 0;
    while (!closed()) {
        if (built_ > kBuildInARow && !bytes.empty()) {
            serve_later(bytes, burst);
            break;
        }
        const Result<bool> complete = unfinished_ ? true : decoder_.take(bytes, burst);
        if (complete && !*complete) break;
        if (complete) {
            unfinished_ = !owner_.on_request(*this, decoder_.request());
            if (!unfinished_) continue;
            if (!closed()) serve_later(bytes, burst);
            break;
        }
        owner_.after_requests();  // what came before the error is answered
        end(complete.error().sentence());
        return;
    }
    owner_.after_requests();
    // The allocation failed for this connection's request, so only this connection is closed.
} catch (const std::bad_alloc&) {
    end("no memory for its requests");
}

// The others have their turn first. Nothing more is read meanwhile.
void Session::serve_later(std::string_view bytes, std::size_t burst) {
    later_ = true;
    owner_.sockets().later([self = shared_from_this(), rest = std::string(bytes), burst] {
        self->later_ = false;
        if (self->closed()) return;
        self->serve(rest, burst);
        self->wait();
    });
}

// The peer has left. Half a request is worth a log line, because the peer meant to send more.
void Session::left() {
    end(decoder_.inside_request() ? "it ended inside a request: " + decoder_.progress() : "");
}

void Session::failed(int error) {
    peer_left(error) ? left() : end(std::system_category().message(error));
}

void Session::queue(Reply reply) {
    if (closed()) return;
    queued_bytes_ += reply.size();
    built_ += reply.bytes.size();
    owner_.memory().used += reply.bytes.size();
    // Small replies are joined into one buffer. A piece with a shared value cannot be joined
    // behind.
    const bool join = !output_.empty() && !output_.back().value &&
                      output_.back().bytes.size() + reply.bytes.size() <= kJoinUpTo;
    if (join) {
        output_.back().bytes += reply.bytes;
        output_.back().value = std::move(reply.value);
    } else {
        output_.push_back({std::move(reply.bytes), std::move(reply.value)});
    }
}

void Session::flush() {
    if (writing_ || closed()) return;
    const std::size_t before = queued_bytes_;
    // Stops after kWriteInARow even if the socket would take more, and continues in the next turn.
    while (queued_bytes_ > 0 && before - queued_bytes_ < kWriteInARow) {
        if (write_pieces()) continue;
        if (!would_block(errno)) return failed(errno);
        break;
    }
    writing_ = queued_bytes_ > 0;
    // Everything is sent to a peer that has finished: the connection can end now.
    if (!writing_ && peer_finished_) return left();
    wait();
}

// Sends what fits into one system call; false: nothing, for the reason in errno.
bool Session::write_pieces() {
    std::array<iovec, kBuffersAWrite> buffers;
    std::size_t count = 0;
    // Bytes of the first piece that were sent before.
    std::size_t skip = front_sent_;
    const auto add = [&](const std::string& bytes) {
        const std::size_t skipped = std::min(skip, bytes.size());
        skip -= skipped;
        if (bytes.size() > skipped)
            buffers[count++] = {const_cast<char*>(bytes.data()) + skipped, bytes.size() - skipped};
    };
    for (std::size_t i = front_; i < output_.size() && count + 2 <= buffers.size(); ++i) {
        add(output_[i].bytes);
        if (output_[i].value) add(*output_[i].value);
    }
    msghdr message{};
    message.msg_iov = buffers.data();
    message.msg_iovlen = count;
    constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
    // Usually there is one buffer. Writing it alone is cheaper than a gathered write.
    const ssize_t sent =
        count == 1 ? ::send(socket_.get(), buffers[0].iov_base, buffers[0].iov_len, kFlags)
                   : ::sendmsg(socket_.get(), &message, kFlags);
    if (sent < 0) return false;
    discard(static_cast<std::size_t>(sent));
    return true;
}

void Session::discard(std::size_t sent) {
    if (sent == queued_bytes_) return forget_output();  // the usual case
    queued_bytes_ -= sent;
    front_sent_ += sent;
    while (front_ < output_.size()) {
        Piece& front = output_[front_];
        const std::size_t size = front.bytes.size() + (front.value ? front.value->size() : 0);
        if (front_sent_ < size) break;
        front_sent_ -= size;
        owner_.memory().used -= front.bytes.size();
        front = Piece{};
        ++front_;
    }
    // Removing from the front is linear, so it is done only when half of the pieces are sent.
    if (front_ > output_.size() / 2) {
        output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(front_));
        front_ = 0;
    }
}

// Drops all queued output. The memory of many pieces is released; that of a few stays for the next
// replies.
void Session::forget_output() {
    for (const Piece& piece : output_) owner_.memory().used -= piece.bytes.size();
    output_.clear();
    if (output_.capacity() > kPiecesToKeep) output_.shrink_to_fit();
    front_ = front_sent_ = queued_bytes_ = 0;
}

void Session::close() {
    if (closed()) return;
    (void)owner_.sockets().want(*this, socket_.get(), 0);
    socket_.reset();
    forget_output();
    decoder_.forget();
}

void Session::end(const std::string& why) {
    if (closed()) return;
    const auto self = shared_from_this();  // keeps this alive when the owner lets go of it
    close();
    owner_.on_end(*this, why);
}

}  // namespace ddprun::store
