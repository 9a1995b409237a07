#include "rendezvous/link/link.h"

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <sstream>

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kQueueLimit = std::size_t{64} << 20;
constexpr std::chrono::seconds kFinishTime{2};

std::string to_text(const asio::ip::tcp::endpoint& endpoint) {
    std::ostringstream text;
    text << endpoint;
    return text.str();
}

}  // namespace

Link::Link(Socket socket, std::size_t limit, Handlers handlers)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      reader_(limit),
      handlers_(std::make_shared<const Handlers>(std::move(handlers))) {
    error_code error;  // of a peer that has gone already: the first read will say so
    socket_.set_option(asio::ip::tcp::no_delay(true), error);
    socket_.non_blocking(true, error);
    peer_ = to_text(socket_.remote_endpoint(error));
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
    // Waits without a buffer, for there may be ten thousand silent links.
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](error_code error) {
        if (self->phase_ == Phase::over) return;
        if (error) return self->end(Error(ErrorCode::closed, self->peer_ + ": " + error.message()));
        self->readable();
    });
}

void Link::readable() {
    std::array<char, 65536> piece;
    error_code error;
    const std::size_t size = socket_.read_some(asio::buffer(piece), error);
    if (error == asio::error::would_block || error == asio::error::interrupted) return read();
    if (error) {
        std::string sentence = peer_ + (error == asio::error::eof ? " has ended the connection"
                                                                  : ": " + error.message());
        if (phase_ == Phase::open && reader_.in_the_middle())
            sentence += " in the middle of a message";
        return end(Error(ErrorCode::closed, std::move(sentence)));
    }
    if (phase_ == Phase::open) {  // while finishing, only the peer's end is of interest
        reader_.add({piece.data(), size});
        take();
    }
    if (phase_ != Phase::over) read();
}

void Link::take() {
    while (phase_ == Phase::open) {
        const auto next = reader_.next();
        if (!next) return end(Error(ErrorCode::malformed, peer_ + " " + next.error().sentence()));
        if (!*next) return;
        framed_ = true;
        std::string_view body = **next;
        if (incoming_ && !incoming_->open(body))
            return end(
                Error(ErrorCode::malformed, peer_ + " has sent a message with a wrong seal"));
        const auto handlers = handlers_;  // promote() may put others in their place
        handlers->on_frame(body);
    }
}

void Link::send(std::string_view body) {
    if (phase_ != Phase::open) return;
    if (queue_.size() + out_.size() + body.size() > kQueueLimit) {
        asio::post(socket_.get_executor(), [self = shared_from_this()] {
            self->end(
                Error(ErrorCode::closed, self->peer_ + " has not read 64 MiB that wait for it"));
        });
        return;
    }
    if (!greeted_) queue_ += kPreface;
    greeted_ = true;
    queue_ += outgoing_ ? frame(body, outgoing_->next(body)) : frame(body);
    write();
}

std::string Link::last_frame(std::string_view body) const {
    return outgoing_ ? frame(body, outgoing_->last_word(body)) : frame(body);
}

void Link::write() {
    if (!out_.empty() || phase_ == Phase::over) return;
    if (queue_.empty()) {
        error_code error;  // of a peer that has gone: the read says so
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
    const auto self = shared_from_this();
    const auto handlers = handlers_;
    stays_ ? settle() : drop();
    handlers->on_end(why);
}

}  // namespace ddprun::rendezvous
