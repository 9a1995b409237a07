// Reading and writing frames on one connection, and all the ways in which it can end.
#include "rendezvous/link/link.h"

#include <unistd.h>

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// A peer that leaves this much unread does not read any more. The queue must not fill the memory.
constexpr std::size_t kQueueLimit = std::size_t{64} << 20;
constexpr std::chrono::seconds kFinishTime{2};

std::string peer_text(const asio::ip::tcp::endpoint& endpoint) {
    const std::string address = endpoint.address().to_string();
    return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
           std::to_string(endpoint.port());
}

}  // namespace

Link::Link(Socket socket, std::size_t limit, Handlers handlers)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      reader_(limit),
      handlers_(std::make_shared<const Handlers>(std::move(handlers))) {
    error_code error;  // a peer that has gone already shows at the first read
    socket_.set_option(asio::ip::tcp::no_delay(true), error);
    socket_.non_blocking(true, error);
    peer_ = peer_text(socket_.remote_endpoint(error));
    local_address_ = socket_.local_endpoint(error).address().to_string();
}

void Link::start(Duration promoted_within) {
    if (promoted_within > Duration{0}) {
        timer_.expires_after(promoted_within);
        timer_.async_wait([weak = weak_from_this()](error_code error) {
            const auto self = weak.lock();
            if (error || !self || self->phase_ != Phase::open) return;
            self->end(Error(ErrorCode::timed_out,
                            self->peer_ + (self->framed_ ? " has not proved itself in time"
                                                         : " has sent no whole first message in "
                                                           "time")));
        });
    }
    read();
}

void Link::promote(std::size_t limit, Handlers handlers) {
    if (phase_ != Phase::open) return;
    timer_.cancel();
    reader_.set_limit(limit);
    handlers_ = std::make_shared<const Handlers>(std::move(handlers));
}

void Link::read() {
    if (phase_ != Phase::open && phase_ != Phase::finishing) return;
    if (reads_ahead_) return read_ahead_of_need();
    // What comes after hand_over() stays in the socket.
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](error_code error) {
        if (self->phase_ == Phase::over) return;
        error ? self->came(error, {}) : self->read_what_is_there();
    });
}

void Link::read_ahead_of_need() {
    const auto read_some = [self = shared_from_this()](error_code error, std::size_t size) {
        if (self->phase_ == Phase::over) return;
        self->came(error, {self->ahead_.data(), size});
        // A full buffer is the beginning of something large.
        size == kReadAhead ? self->read_what_is_there() : self->read();
    };
    socket_.async_read_some(asio::buffer(ahead_), read_some);
}

void Link::read_what_is_there() {
    if (phase_ != Phase::open && phase_ != Phase::finishing) return;
    std::array<char, 65536> piece;
    error_code error;
    const std::size_t size = socket_.read_some(asio::buffer(piece), error);
    came(error, {piece.data(), size});
    read();
}

void Link::came(error_code error, std::string_view bytes) {
    // A wait may end although there is nothing to read.
    if (error == asio::error::would_block || error == asio::error::interrupted) return;
    if (error) {
        std::string sentence = peer_ + (error == asio::error::eof ? " has ended the connection"
                                                                  : ": " + error.message());
        // Tells a peer that was cut off from one that has left between two messages.
        if (phase_ == Phase::open && reader_.in_the_middle())
            sentence += " in the middle of a message";
        return end(Error(ErrorCode::closed, std::move(sentence)));
    }
    if (phase_ != Phase::open) return;  // while finishing, only the peer's end matters
    reader_.add(bytes);
    take();
}

void Link::take() {
    while (phase_ == Phase::open) {
        // One read may bring many frames. A handler may end the link, so the phase is checked
        // before each.
        const auto next = reader_.next();
        if (!next) return end(Error(ErrorCode::malformed, peer_ + " " + next.error().sentence()));
        if (!*next) return;
        framed_ = true;
        std::string_view body = **next;
        if (incoming_ && !incoming_->open(body))
            return end(
                Error(ErrorCode::malformed, peer_ + " has sent a message with a wrong seal"));
        const auto handlers = handlers_;  // promote() may replace them during the call
        handlers->on_frame(body);
    }
}

void Link::send(std::string_view body) {
    if (phase_ != Phase::open) return;
    if (queue_.size() + out_.size() + body.size() > kQueueLimit) {
        // Posted, because on_end must not come from within send().
        asio::post(socket_.get_executor(), [self = shared_from_this()] {
            self->end(
                Error(ErrorCode::closed, self->peer_ + " has not read 64 MiB that wait for it"));
        });
        return;
    }
    // The preface goes out with the first frame, so a link that never sends stays silent.
    if (!greeted_) queue_ += kPreface;
    greeted_ = true;
    queue_ += outgoing_ ? frame(body, outgoing_->next(body)) : frame(body);
    write();
}

std::string Link::last_frame(std::string_view body) const {
    return outgoing_ ? frame(body, outgoing_->last_word(body)) : frame(body);
}

// One write at a time. Frames that are queued meanwhile go out together in the next one.
void Link::write() {
    if (!out_.empty() || phase_ == Phase::over) return;
    if (queue_.empty() && phase_ == Phase::handing_over) return give_socket();
    if (queue_.empty()) {
        error_code error;  // if the peer has gone, the read reports it
        if (phase_ == Phase::finishing && !stays_) socket_.shutdown(Socket::shutdown_send, error);
        return;
    }
    out_.swap(queue_);
    const auto written = [self = shared_from_this()](error_code error, std::size_t) {
        self->out_.clear();
        if (self->phase_ == Phase::over) return;
        if (error) return self->end(Error(ErrorCode::closed, self->peer_ + ": " + error.message()));
        self->write();
    };
    asio::async_write(socket_, asio::buffer(out_), written);
}

// Waits for the peer's end, so that the peer has read everything before our socket is closed.
// Closing a socket with unread bytes would send a reset, which could discard our last message at
// the peer.
void Link::finish() {
    if (phase_ != Phase::open) return;
    phase_ = Phase::finishing;
    timer_.expires_after(kFinishTime);
    timer_.async_wait([weak = weak_from_this()](error_code error) {
        const auto self = weak.lock();
        if (!error && self && self->phase_ == Phase::finishing)
            self->end(
                Error(ErrorCode::timed_out, self->peer_ + " did not take its last message in 2 s"));
    });
    write();
}

void Link::finish_with_us() {
    if (phase_ != Phase::open) return;
    phase_ = Phase::finishing;
    stays_ = true;
    write();
}

void Link::hand_over(std::function<void(Socket)> taken) {
    DDPRUN_CHECK(!reads_ahead_, "what was read ahead would be lost to who takes the socket");
    if (phase_ != Phase::open) return;
    phase_ = Phase::handing_over;
    taken_ = std::move(taken);
    timer_.expires_after(kFinishTime);
    timer_.async_wait([weak = weak_from_this()](error_code error) {
        const auto self = weak.lock();
        if (!error && self && self->phase_ == Phase::handing_over)
            self->end(
                Error(ErrorCode::timed_out, self->peer_ + " did not take its last message in 2 s"));
    });
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->write(); });
}

void Link::give_socket() {
    const auto taken = std::exchange(taken_, nullptr);
    error_code error;
    const auto protocol = socket_.local_endpoint(error).protocol();
    const auto executor = socket_.get_executor();
    const int handle = socket_.release(error);
    settle();
    if (error) return;
    Socket socket(executor);
    socket.assign(protocol, handle, error);
    if (error)
        ::close(handle);
    else
        taken(std::move(socket));
}

std::string Link::key_for(std::string_view use, bool ours) const {
    const auto& seal = ours ? outgoing_ : incoming_;
    return seal ? seal->key_for(use) : std::string();
}

void Link::settle() {
    phase_ = Phase::over;
    handlers_.reset();
    timer_.cancel();
}

void Link::drop() {
    settle();
    error_code error;
    socket_.close(error);
}

void Link::end(Error why) {
    if (phase_ == Phase::over) return;
    // The handler may let go of the last other reference.
    const auto self = shared_from_this();
    const auto handlers = handlers_;
    // After finish_with_us() the socket stays open until this object is destroyed.
    stays_ ? settle() : drop();
    handlers->on_end(why);
}

}  // namespace ddprun::rendezvous
