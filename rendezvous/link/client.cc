// The search for a rendezvous, as a coroutine, and the connection that comes of it.
#include "rendezvous/link/client.h"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "base/loop/resolve.h"
#include "base/system/boot_clock.h"
#include "rendezvous/link/link.h"
#include "rendezvous/link/node_handshake.h"
#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Limits for one candidate: for its answer to the opening, for connecting, for looking up its name.
constexpr Duration kAnswerWithin = std::chrono::seconds{5};
constexpr Duration kConnectWithin = std::chrono::seconds{3};
constexpr Duration kResolveWithin = std::chrono::seconds{5};
// Between two rounds through all candidates.
constexpr Duration kFirstPause = std::chrono::milliseconds{1};
constexpr Duration kLongestPause = std::chrono::milliseconds{50};
// How long refusals are passed over while there are other candidates.
constexpr Duration kRefusedPatience = std::chrono::seconds{30};

std::string to_text(const CallTarget& candidate) {
    return candidate.host + ":" + std::to_string(candidate.port);
}

}  // namespace

// One connect(): its coroutine and its connection. The next connect() and close() replace the whole
// object, so nothing of an old connection can be taken for the new one's.
struct ClientCall : std::enable_shared_from_this<ClientCall> {
    using tcp = asio::ip::tcp;
    enum class Phase { calling, up, over };

    ClientCall(asio::io_context& loop, Log log, Client::Callbacks callbacks,
               std::vector<CallTarget> candidates, ToLeader opening, Time deadline, bool once,
               Secrets* secrets, std::shared_ptr<bool> has_met)
        : loop(loop),
          log(std::move(log)),
          callbacks(std::move(callbacks)),
          candidates(std::move(candidates)),
          opening(std::move(opening)),
          deadline(deadline),
          once(once),
          secrets(secrets),
          has_met(std::move(has_met)),
          pause(loop),
          answered(loop) {}

    void start();
    asio::awaitable<void> find();
    asio::awaitable<void> try_candidate(CallTarget candidate);
    asio::awaitable<void> try_address(CallTarget candidate, asio::ip::address address);
    asio::awaitable<error_code> connect(tcp::socket& socket, tcp::endpoint to);
    asio::awaitable<void> ask(tcp::socket socket);
    void begin();
    void frame_came(std::string_view body);
    void message_came(std::string_view body);
    void link_ended(const Error& why);
    void come_up();
    void lose(Error why);
    void stop();
    bool passes_over(const ToNode& first);

    // The time until the deadline, at most `limit`.
    Duration left(Duration limit) const {
        return deadline == kNever ? limit : std::clamp(deadline - boot_now(), Duration{0}, limit);
    }
    bool goes_on() const { return phase == Phase::calling && boot_now() < deadline; }
    void note(const std::string& sentence) { last_try = sentence; }

    asio::io_context& loop;
    const Log log;
    const Client::Callbacks callbacks;
    const std::vector<CallTarget> candidates;
    const ToLeader opening;
    const Time deadline;
    const bool once;
    Secrets* const secrets;
    // Shared by all calls of one client: whether a rendezvous has ever accepted this node.
    const std::shared_ptr<bool> has_met;
    Phase phase = Phase::calling;
    asio::steady_timer pause;
    asio::steady_timer answered;  // cancelled when the link has answered or ended
    std::shared_ptr<Link> link;
    std::optional<NodeHandshake> handshake;  // on that link
    std::shared_ptr<tcp::socket> connecting;
    std::optional<ToNode> first;        // the answer to the opening
    std::optional<Time> refused_since;  // by one of several candidates
    std::string last_try;  // what the last attempt met, for the sentence at the deadline
};

void ClientCall::start() {
    const auto self = shared_from_this();
    asio::co_spawn(
        loop, [](std::shared_ptr<ClientCall> call) { return call->find(); }(self),
        [self](std::exception_ptr failed) {
            if (failed)
                std::rethrow_exception(failed);  // no memory or no sockets: ends the process
        });
}

// Rounds through all candidates, with a growing pause between them.
asio::awaitable<void> ClientCall::find() {
    const auto self = shared_from_this();
    Duration wait = kFirstPause;
    while (goes_on()) {
        for (const CallTarget& candidate : candidates) {
            if (goes_on()) co_await try_candidate(candidate);
        }
        if (!goes_on() || once) break;
        pause.expires_after(left(wait));
        error_code aborted;
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, aborted));
        wait = std::min(2 * wait, kLongestPause);
    }
    if (phase != Phase::calling) co_return;
    // The one round failed before the deadline.
    if (once && boot_now() < deadline) {
        lose(Error(ErrorCode::unavailable, last_try));
        co_return;
    }
    const std::string count =
        candidates.size() == 1 ? "" : std::to_string(candidates.size()) + " candidates, ";
    lose(Error(ErrorCode::timed_out,
               "could not reach the rendezvous in time (" + count +
                   "last: " + (last_try.empty() ? "no candidate to call" : last_try) + ")"));
}

// A name may have several addresses. All are tried, because only one of them may be reachable from
// here.
asio::awaitable<void> ClientCall::try_candidate(CallTarget candidate) {
    auto addresses = co_await resolve(candidate.host, left(kResolveWithin));
    if (!addresses && !candidate.if_unknown.empty())
        addresses = co_await resolve(candidate.if_unknown, left(kResolveWithin));
    if (!addresses) co_return note(addresses.error().sentence());
    for (const asio::ip::address& address : *addresses) {
        if (goes_on()) co_await try_address(candidate, address);
    }
}

asio::awaitable<void> ClientCall::try_address(CallTarget candidate, asio::ip::address address) {
    connecting = std::make_shared<tcp::socket>(loop);
    const auto socket = connecting;
    const tcp::endpoint to(address, candidate.port);
    const error_code error = co_await connect(*socket, to);
    connecting.reset();
    // stop() may have been called during the wait.
    if (phase != Phase::calling) co_return;
    if (error) {
        note(to_text(candidate) + ": " +
             (error == asio::error::operation_aborted ? "no answer" : error.message()));
        co_return;
    }
    // TCP can connect a socket to itself: on loopback, if nobody listens on a port of the ephemeral
    // range and the kernel chooses just this port as ours.
    error_code ignored;
    if (socket->local_endpoint(ignored) == socket->remote_endpoint(ignored)) {
        note(to_text(candidate) + ": nobody listens");
        co_return;
    }
    co_await ask(std::move(*socket));
}

asio::awaitable<error_code> ClientCall::connect(tcp::socket& socket, tcp::endpoint to) {
    // The timer's handler may run after this function has returned, so it looks the socket up
    // through a weak pointer.
    asio::steady_timer timer(loop, left(kConnectWithin));
    timer.async_wait([weak = std::weak_ptr(connecting)](error_code aborted) {
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
    link = std::make_shared<Link>(std::move(socket), kLeaderFrameLimit, std::move(handlers));
    first.reset();
    answered.expires_after(left(kAnswerWithin));
    link->start(Duration{0});
    begin();
    error_code cancelled;
    co_await answered.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (phase != Phase::calling || !link) co_return;
    // An attempt that the deadline has cut short tells less than the one before it.
    if (goes_on() || last_try.empty()) note(link->peer() + " does not answer");
    link->drop();
    link.reset();
}

void ClientCall::begin() {
    if (!secrets) return link->send(encode(opening));
    // The handshake has failed: to this client it is like a connection that ended.
    const auto failed = [this](const Error& why) {
        link->drop();
        link_ended(why);
    };
    handshake.emplace(
        // `believe_refusals` as long as no rendezvous has accepted us.
        *secrets, link, opening, !*has_met,
        NodeHandshake::Handlers{[this](std::string_view body) { message_came(body); }, failed});
    handshake->start();
}

// Called by the link. The handshake, if there is one, gets all frames and passes on what may be
// obeyed.
void ClientCall::frame_came(std::string_view body) {
    const auto self = shared_from_this();
    if (handshake) return handshake->take(body);
    message_came(body);
}

// The first message decides whether the link comes up. All further ones are for the agent.
void ClientCall::message_came(std::string_view body) {
    auto message = decode_to_node(body);
    if (!message) {
        const Error why(ErrorCode::malformed,
                        "from " + link->peer() + ": " + message.error().sentence());
        link->drop();
        return link_ended(why);
    }
    if (phase == Phase::up) return callbacks.on_message(*message);
    if (passes_over(*message)) {
        link->drop();
        return link_ended(Error(ErrorCode::refused, link->peer() + " refuses: " +
                                                        std::get<Refused>(*message).sentence));
    }
    first = std::move(*message);
    come_up();
}

// A refusal may come from a rendezvous of another job on one of our candidate ports. Among several
// candidates the right one may still come up, so it is passed over for a while.
bool ClientCall::passes_over(const ToNode& answer) {
    if (!std::holds_alternative<Refused>(answer) || candidates.size() < 2) return false;
    if (!refused_since) refused_since = boot_now();
    return boot_now() - *refused_since < kRefusedPatience;
}

void ClientCall::come_up() {
    const auto self = shared_from_this();
    phase = Phase::up;
    // A refusal does not count as having met the rendezvous.
    *has_met = *has_met || !std::holds_alternative<Refused>(*first);
    answered.cancel();
    callbacks.on_up(link->local_address());
    // on_up may have closed the link.
    if (phase == Phase::up) callbacks.on_message(*first);
}

void ClientCall::link_ended(const Error& why) {
    if (phase == Phase::up) return lose(why);
    note(why.sentence());
    link.reset();
    answered.cancel();
}

void ClientCall::lose(Error why) {
    const auto self = shared_from_this();
    phase = Phase::over;
    link.reset();
    callbacks.on_lost(why);
}

// Ends without a callback. What is queued on a link that is up is still sent.
void ClientCall::stop() {
    if (phase == Phase::over) return;
    // A link that is up may still owe its peer a message, such as Leave. One that is only being
    // tried owes nothing.
    const bool was_up = std::exchange(phase, Phase::over) == Phase::up;
    pause.cancel();
    answered.cancel();
    error_code ignored;  // an error of a socket that was never connected does not matter
    if (connecting) connecting->close(ignored);
    if (!link) return;
    if (was_up)
        link->finish();
    else
        link->drop();
    link.reset();
}

struct Client::State {
    asio::io_context& loop;
    Log log;
    Callbacks callbacks;
    Secrets* secrets;
    std::shared_ptr<bool> has_met = std::make_shared<bool>(false);
    std::shared_ptr<ClientCall> call = nullptr;
};

Client::Client(asio::io_context& loop, Log log, Callbacks callbacks, Secrets* secrets)
    : state_(std::make_shared<State>(State{loop, std::move(log), std::move(callbacks), secrets})) {}

Client::~Client() { close(); }

void Client::connect(std::vector<CallTarget> candidates, ToLeader opening, Time deadline,
                     bool once) {
    close();
    state_->call = std::make_shared<ClientCall>(state_->loop, state_->log, state_->callbacks,
                                                std::move(candidates), std::move(opening), deadline,
                                                once, state_->secrets, state_->has_met);
    // Posted, because a deadline that has passed already must not call back from within connect().
    asio::post(state_->loop, [call = state_->call] {
        if (call->phase == ClientCall::Phase::calling) call->start();
    });
}

void Client::send(const ToLeader& message) {
    if (is_up()) state_->call->link->send(encode(message));
}

void Client::close() {
    if (state_->call) std::exchange(state_->call, nullptr)->stop();
}

int Client::part() {
    const int socket = native_handle();
    if (socket < 0) return -1;
    const int kept = ::fcntl(socket, F_DUPFD_CLOEXEC, 3);
    // The duplicate keeps the connection open when our descriptor is closed.
    state_->call->link->drop();
    close();
    return kept;
}

bool Client::is_up() const { return state_->call && state_->call->phase == ClientCall::Phase::up; }

std::string Client::gone_frame(const NodeId& node) const {
    return is_up() ? state_->call->link->last_frame(encode(ToLeader(Gone{node}))) : std::string();
}

int Client::native_handle() const { return is_up() ? state_->call->link->native_handle() : -1; }

}  // namespace ddprun::rendezvous
