// How one candidate after the other is called, and how a connection comes up and ends.
#include "rendezvous/link/client_call.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>
#include <variant>

#include "base/loop/resolve.h"
#include "base/printable.h"
#include "base/system/boot_clock.h"
#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Limits for one candidate: for its answer to the opening, for connecting, for looking up its name.
constexpr Duration kAnswerWithin = std::chrono::seconds{5};
constexpr Duration kConnectWithin = std::chrono::seconds{3};
constexpr Duration kResolveWithin = std::chrono::seconds{5};

std::string target_text(const CallTarget& candidate) {
    return candidate.host + ":" + std::to_string(candidate.port);
}

}  // namespace

ClientCall::ClientCall(asio::io_context& loop, Log log, ClientCallbacks callbacks, Order order,
                       Secrets* secrets, bool has_met)
    : loop_(loop),
      log_(std::move(log)),
      callbacks_(std::move(callbacks)),
      candidates_(std::move(order.candidates)),
      opening_(std::move(order.opening)),
      secrets_(secrets),
      has_met_(has_met),
      patience_(candidates_.size(), order.deadline, order.once,
                candidates_.empty() ? "" : target_text(candidates_.front())),
      pause_(loop),
      answered_(loop) {}

bool ClientCall::goes_on() const {
    return phase_ == Phase::calling && patience_.goes_on(boot_now());
}

Duration ClientCall::left(Duration limit) const { return patience_.left(boot_now(), limit); }

// Posted, because a deadline that has passed already must not call back from within start().
void ClientCall::start() {
    asio::post(loop_, [self = shared_from_this()] {
        if (self->phase_ != Phase::calling) return;
        asio::co_spawn(self->loop_, self->find(), [self](std::exception_ptr failed) {
            if (failed)
                std::rethrow_exception(failed);  // no memory or no sockets: ends the process
        });
    });
}

// Rounds through all candidates, with a pause between them.
asio::awaitable<void> ClientCall::find() {
    const auto self = shared_from_this();
    while (goes_on()) {
        for (const CallTarget& candidate : candidates_) {
            if (goes_on()) co_await try_candidate(candidate);
        }
        if (phase_ != Phase::calling) co_return;
        // A single candidate is an endpoint that the user has named. Of a Slurm step's nodes the
        // leader tells who is missing.
        if (auto word = patience_.word(boot_now()))
            log_({candidates_.size() == 1 ? Note::Level::warn : Note::Level::info,
                  std::move(*word)});
        const auto wait = patience_.next_pause(boot_now());
        if (!wait) break;
        pause_.expires_after(*wait);
        error_code aborted;
        co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, aborted));
    }
    if (phase_ == Phase::calling) lose(patience_.verdict(boot_now()));
}

// A name may have several addresses. All are tried, because only one of them may be reachable from
// here.
asio::awaitable<void> ClientCall::try_candidate(CallTarget candidate) {
    auto addresses = co_await resolve(candidate.host, left(kResolveWithin));
    if (!addresses && !candidate.if_unknown.empty())
        addresses = co_await resolve(candidate.if_unknown, left(kResolveWithin));
    if (!addresses) co_return patience_.note(addresses.error().sentence());
    for (const asio::ip::address& address : *addresses) {
        if (goes_on()) co_await try_address(candidate, address);
    }
}

asio::awaitable<void> ClientCall::try_address(CallTarget candidate, asio::ip::address address) {
    connecting_ = std::make_shared<tcp::socket>(loop_);
    const auto socket = connecting_;
    const tcp::endpoint to(address, candidate.port);
    const error_code error = co_await connect(*socket, to);
    connecting_.reset();
    // stop() may have been called during the wait.
    if (phase_ != Phase::calling) co_return;
    if (error) {
        patience_.note(target_text(candidate) + ": " +
                       (error == asio::error::operation_aborted ? "no answer" : error.message()));
        co_return;
    }
    // TCP can connect a socket to itself: on loopback, if nobody listens on a port of the ephemeral
    // range and the kernel chooses just this port as ours.
    error_code ignored;
    if (socket->local_endpoint(ignored) == socket->remote_endpoint(ignored)) {
        patience_.note(target_text(candidate) + ": nobody listens");
        co_return;
    }
    guess_ = candidate.guess;
    co_await ask(std::move(*socket));
}

asio::awaitable<error_code> ClientCall::connect(tcp::socket& socket, tcp::endpoint to) {
    // The timer's handler may run after this function has returned, so it looks the socket up
    // through a weak pointer.
    asio::steady_timer timer(loop_, left(kConnectWithin));
    timer.async_wait([weak = std::weak_ptr(connecting_)](error_code aborted) {
        const auto late = weak.lock();
        if (!aborted && late) late->close(aborted);
    });
    error_code error;
    // The kernel itself would try for minutes if packets are dropped.
    co_await socket.async_connect(to, asio::redirect_error(asio::use_awaitable, error));
    if (!error && !socket.is_open()) error = asio::error::operation_aborted;
    co_return error;
}

// Sends the opening and waits for an answer, the end of the connection, or the time limit. Then
// either the link is up, or everything is as before.
asio::awaitable<void> ClientCall::ask(tcp::socket socket) {
    // The handlers hold this call weakly, since the link may outlive it.
    Link::Handlers handlers;
    const auto weak = weak_from_this();
    handlers.on_frame = [weak](std::string_view body) {
        if (const auto self = weak.lock()) self->frame_came(body);
    };
    handlers.on_end = [weak](const Error& why) {
        if (const auto self = weak.lock()) self->link_ended(why);
    };
    link_ = std::make_shared<Link>(std::move(socket), kLeaderFrameLimit, std::move(handlers));
    link_->read_ahead();
    answered_.expires_after(left(kAnswerWithin));
    link_->start(Duration{0});
    begin();
    error_code cancelled;
    co_await answered_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (phase_ != Phase::calling || !link_) co_return;
    patience_.note_silence(boot_now(), link_->peer() + " does not answer");
    link_->drop();
    link_.reset();
}

void ClientCall::begin() {
    if (!secrets_) return link_->send(encode(opening_));
    handshake_.emplace(
        // `believe_refusals` as long as no rendezvous has accepted us.
        *secrets_, link_, opening_, !has_met_,
        NodeHandshake::Handlers{[this](std::string_view body) { message_came(body); },
                                [this](const Error& why) { handshake_failed(why); }});
    handshake_->start();
}

// To this client it is like a connection that ended. The user reads at once why the node does not
// come in: with a wrong secret nothing else would be said until the deadline.
void ClientCall::handshake_failed(const Error& why) {
    if (why.code() == ErrorCode::refused)
        log_({Note::Level::warn, printable(why.sentence()) + "; this node goes on calling"});
    link_->drop();
    link_ended(why);
}

// Called by the link. The handshake, if there is one, gets all frames and passes on what may be
// obeyed.
void ClientCall::frame_came(std::string_view body) {
    const auto self = shared_from_this();
    if (handshake_) return handshake_->take(body);
    message_came(body);
}

// The first message decides whether the link comes up. All further ones are for the agent.
void ClientCall::message_came(std::string_view body) {
    auto message = decode_to_node(body);
    if (!message) {
        const Error why(ErrorCode::malformed,
                        "from " + link_->peer() + ": " + message.error().sentence());
        link_->drop();
        return link_ended(why);
    }
    if (phase_ == Phase::up) return callbacks_.on_message(*message);
    const auto* refused = std::get_if<Refused>(&*message);
    if (refused && (guess_ || (!refused->for_good && patience_.passes_over_refusal(boot_now())))) {
        link_->drop();
        return link_ended(
            Error(ErrorCode::refused, link_->peer() + " refuses: " + refused->sentence));
    }
    // It does not lead, and knows nobody who does: another candidate may. Where several nodes of a
    // job are on one host, any of them may have got the first port.
    const auto* elsewhere = std::get_if<Elsewhere>(&*message);
    if (elsewhere && elsewhere->address.empty() && candidates_.size() > 1) {
        link_->drop();
        return link_ended(
            Error(ErrorCode::unavailable, link_->peer() + " does not lead, nor knows who does"));
    }
    come_up(*message);
}

void ClientCall::come_up(const ToNode& first) {
    const auto self = shared_from_this();
    phase_ = Phase::up;
    // A refusal does not count as having met the rendezvous.
    has_met_ = has_met_ || !std::holds_alternative<Refused>(first);
    answered_.cancel();
    callbacks_.on_up(link_->local_address());
    // on_up may have closed the link.
    if (phase_ == Phase::up) callbacks_.on_message(first);
}

void ClientCall::link_ended(const Error& why) {
    if (phase_ == Phase::up) return lose(why);
    patience_.note(why.sentence());
    link_.reset();
    answered_.cancel();
}

void ClientCall::lose(Error why) {
    const auto self = shared_from_this();
    phase_ = Phase::over;
    link_.reset();
    callbacks_.on_lost(why);
}

void ClientCall::stop() {
    if (phase_ == Phase::over) return;
    // A link that is up may still owe its peer a message, such as Leave. One that is only being
    // tried owes nothing.
    const bool was_up = std::exchange(phase_, Phase::over) == Phase::up;
    pause_.cancel();
    answered_.cancel();
    error_code ignored;  // an error of a socket that was never connected does not matter
    if (connecting_) connecting_->close(ignored);
    if (!link_) return;
    if (was_up)
        link_->finish();
    else
        link_->drop();
    link_.reset();
}

}  // namespace ddprun::rendezvous
