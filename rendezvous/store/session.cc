// Reading requests from one connection and writing its replies, without ever waiting for it.
#include "rendezvous/store/session.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <new>
#include <utility>

namespace ddprun::store {
namespace asio = boost::asio;
using boost::system::error_code;

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

bool would_block(const error_code& error) {
    return error == asio::error::would_block || error == asio::error::try_again;
}

// Peers often leave without a good-bye: workers are killed.
bool peer_left(const error_code& error) {
    return error == asio::error::eof || error == asio::error::connection_reset ||
           error == asio::error::broken_pipe;
}

}  // namespace

Session::Session(ConnectionId id, asio::ip::tcp::socket socket, const asio::ip::tcp::endpoint& peer,
                 const Limits& limits, Dialect legacy, SessionOwner& owner)
    : id_(id),
      socket_(std::move(socket)),
      peer_(peer),
      decoder_(limits, legacy, &owner.memory()),
      owner_(owner) {}

void Session::start() {
    error_code ignored;  // the options only improve a connection
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    // Keep-alive finds peers whose host has died. Without it their connections would stay for ever.
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    error_code error;
    socket_.non_blocking(true, error);
    if (error) return end("cannot be made non-blocking: " + error.message());
    wait_readable();
}

void Session::wait_readable() {
    // A peer that does not take its replies is not read from, so it cannot cause more of them.
    if (reading_ || closed() || peer_finished_ || queued_bytes_ > kPauseReadingAt) return;
    reading_ = true;
    socket_.async_wait(asio::socket_base::wait_read, [self = shared_from_this()](error_code error) {
        self->reading_ = false;
        if (error || self->closed()) return;
        self->read();
    });
}

void Session::read() {
    for (int i = 0; i < kReadsInARow; ++i) {
        if (!read_once()) break;
    }
    wait_readable();
}

// Reads once and serves what has come. Returns whether there may be more to read at once.
bool Session::read_once() {
    const std::span<char> room = owner_.read_buffer();
    error_code error;
    const std::size_t got = socket_.read_some(asio::buffer(room.data(), room.size()), error);
    if (would_block(error)) return false;
    // The peer may have closed only its sending half; it still gets its replies.
    if (error == asio::error::eof && queued_bytes_ > 0) {
        peer_finished_ = true;
        return false;
    }
    if (error) {
        peer_left(error) ? left() : end(error.message());
        return false;
    }
    // A read that does not fill the buffer has emptied the socket: the peer has paused.
    const bool burst_ends = got < room.size();
    serve({room.data(), got}, burst_ends ? got : 0);
    return !burst_ends && !reading_ && !closed() && queued_bytes_ <= kPauseReadingAt;
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
    reading_ = true;
    asio::post(socket_.get_executor(),
               [self = shared_from_this(), rest = std::string(bytes), burst] {
                   self->reading_ = false;
                   if (self->closed()) return;
                   self->serve(rest, burst);
                   self->wait_readable();
               });
}

// The peer has left. Half a request is worth a log line, because the peer meant to send more.
void Session::left() {
    end(decoder_.inside_request() ? "it ended inside a request: " + decoder_.progress() : "");
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
    error_code error;
    const std::size_t before = queued_bytes_;
    // Stops after kWriteInARow even if the socket would take more. wait_writable() then continues
    // in the next turn of the loop.
    while (queued_bytes_ > 0 && !error && before - queued_bytes_ < kWriteInARow)
        write_pieces(error);
    if (error && !would_block(error)) return peer_left(error) ? left() : end(error.message());
    if (queued_bytes_ > 0) return wait_writable();
    // Everything is sent to a peer that has finished: the connection can end now.
    if (peer_finished_) return left();
    wait_readable();
}

void Session::wait_writable() {
    writing_ = true;
    socket_.async_wait(asio::socket_base::wait_write,
                       [self = shared_from_this()](error_code error) {
                           self->writing_ = false;
                           if (error || self->closed()) return;
                           self->flush();
                       });
}

void Session::write_pieces(error_code& error) {
    std::array<asio::const_buffer, kBuffersAWrite> buffers;
    std::size_t count = 0;
    // Bytes of the first piece that were sent before.
    std::size_t skip = front_sent_;
    const auto add = [&](const std::string& bytes) {
        const std::size_t skipped = std::min(skip, bytes.size());
        skip -= skipped;
        if (bytes.size() > skipped) buffers[count++] = asio::buffer(bytes) + skipped;
    };
    for (std::size_t i = front_; i < output_.size() && count + 2 <= buffers.size(); ++i) {
        add(output_[i].bytes);
        if (output_[i].value) add(*output_[i].value);
    }
    // Usually there is one buffer. Writing it alone is cheaper than a gathered write.
    discard(count == 1 ? socket_.write_some(asio::buffer(buffers[0]), error)
                       : socket_.write_some(std::span(buffers.data(), count), error));
}

void Session::discard(std::size_t sent) {
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
    if (front_ == output_.size()) {
        forget_output();
        // Removing from the front is linear, so it is done only when half of the pieces are sent.
    } else if (front_ > output_.size() / 2) {
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
    error_code ignored;
    socket_.close(ignored);
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
