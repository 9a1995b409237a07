// The listener and the callers of a check, as coroutines on one loop with a thread of its own.
#include "launcher/check/check_reach.h"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/algorithm/hex.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <future>

#include "base/loop/ended_by.h"
#include "base/loop/resolve.h"
#include "base/system/random_bytes.h"
#include "base/system/start_thread.h"
#include "launcher/job/meeting_point.h"

namespace ddprun::launcher {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// kBulk does not fit into one packet of any usual MTU. kAtOnce bounds the open sockets of one node.
constexpr std::size_t kWord = 16, kBulk = 64 * 1024, kAtOnce = 64;
// Limits for a connect and for a send or receive. After kCallLimit no further peer is called.
constexpr auto kConnectLimit = std::chrono::seconds{5}, kAnswerLimit = std::chrono::seconds{10};
constexpr auto kCallLimit = std::chrono::seconds{20};
constexpr auto kWithError = asio::as_tuple(asio::use_awaitable);
using Steady = std::chrono::steady_clock;

const std::string& bulk() {
    static const std::string bytes(kBulk, 'b');
    return bytes;
}

// A random word in hexadecimal, so that it can stand in a line of text with the address.
std::string new_word() { return boost::algorithm::hex_lower(random_bytes(kWord / 2)); }

Error late(Steady::duration limit) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
    return Error(ErrorCode::timed_out, "no answer within " + std::to_string(seconds) + " s");
}

// Runs a socket operation with a time limit.
template <class Operation>
asio::awaitable<Result<>> answered_in_time(Steady::duration limit, Operation operation) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    const auto ended = co_await ended_by(timer, Steady::now() + limit, std::move(operation));
    if (!ended) co_return late(limit);
    if (const error_code code = std::get<0>(*ended))
        co_return Error(ErrorCode::unavailable, code.message());
    co_return Result<>();
}

asio::awaitable<Result<>> send(tcp::socket& socket, const std::string& bytes) {
    co_return co_await answered_in_time(kAnswerLimit,
                                        asio::async_write(socket, asio::buffer(bytes), kWithError));
}

asio::awaitable<Result<>> receive(tcp::socket& socket, std::string& bytes) {
    co_return co_await answered_in_time(kAnswerLimit,
                                        asio::async_read(socket, asio::buffer(bytes), kWithError));
}

// Tries all addresses of a name in turn, each on a fresh socket: a name may have an IPv6 address
// that leads nowhere and an IPv4 address that works.
asio::awaitable<Result<>> connect(tcp::socket& socket, const std::string& host,
                                  std::uint16_t port) {
    const auto addresses = co_await ddprun::resolve(host, kConnectLimit);
    if (!addresses) co_return addresses.error();
    Result<> connected = Error(ErrorCode::not_found, "the host name has no address");
    for (const auto& address : *addresses) {
        error_code ignored;
        socket.close(ignored);
        connected = co_await answered_in_time(
            kConnectLimit, socket.async_connect(tcp::endpoint(address, port), kWithError));
        if (connected) break;
    }
    co_return connected;
}

}  // namespace

struct Reach::State {
    explicit State(WallClock wall_clock) : clock(std::move(wall_clock)), word(new_word()) {}

    asio::awaitable<void> accept();
    asio::awaitable<void> answer(tcp::socket socket);
    asio::awaitable<void> call_next();
    asio::awaitable<Result<>> call(const Peer& peer);

    WallClock clock;
    std::string word;
    asio::io_context loop{1};
    std::optional<tcp::acceptor> listener;
    std::uint16_t port = 0;
    Thread thread;
    // Only for call(); touched only on the loop's thread.
    std::vector<Peer> peers;
    std::size_t next = 0, callers = 0;
    Steady::time_point until;
    Outcome outcome;
    std::promise<void> done;
};

// An error of a single accept (the caller gave up) is ignored. Only closing the listener ends this.
asio::awaitable<void> Reach::State::accept() {
    for (;;) {
        auto [code, socket] = co_await listener->async_accept(kWithError);
        if (code == asio::error::operation_aborted) co_return;
        if (!code) asio::co_spawn(loop, answer(std::move(socket)), asio::detached);
    }
}

// Answers one caller: its word, our word and time, then the bulk back and forth. A wrong word ends
// it without an answer, so a stranger learns nothing.
asio::awaitable<void> Reach::State::answer(tcp::socket socket) {
    std::string asked(kWord, '\0'), bytes(kBulk, '\0');
    const Result<> heard = co_await receive(socket, asked);
    if (!heard || asked != word) co_return;
    const auto now = std::bit_cast<std::array<char, sizeof(double)>>(clock());
    if (!co_await send(socket, word + std::string(now.data(), now.size()))) co_return;
    if (!co_await receive(socket, bytes)) co_return;
    co_await send(socket, bytes);
}

// Calls one peer. The first exchange tells whether it is reached at all, the second whether large
// packets pass. An MTU problem shows as a first exchange that works and a second one that does not.
asio::awaitable<Result<>> Reach::State::call(const Peer& peer) {
    tcp::socket socket(loop);
    if (const auto up = co_await connect(socket, peer.host, peer.port); !up) co_return up;
    const double asked_at = clock();
    if (const auto sent = co_await send(socket, peer.word); !sent) co_return sent;
    std::string answer(kWord + sizeof(double), '\0');
    if (const auto got = co_await receive(socket, answer); !got) co_return got;
    if (!answer.starts_with(peer.word))
        co_return Error(ErrorCode::malformed, "another program answers at this address");
    // As NTP does it: the answer is assumed to be halfway between question and answer. Half of the
    // round trip is the largest possible mistake.
    if (peer.rank == 0) {
        double shown = 0;
        std::memcpy(&shown, answer.data() + kWord, sizeof shown);
        const double half = (clock() - asked_at) / 2;
        outcome.clock = {shown - asked_at - half, half};
    }
    std::string back(kBulk, '\0');
    Result<> passed = co_await send(socket, bulk());
    if (passed) passed = co_await receive(socket, back);
    if (!passed)
        co_return Error(ErrorCode::unavailable, "small messages pass, 64 KiB do not (" +
                                                    passed.error().sentence() +
                                                    "): the path drops large packets (MTU)");
    co_return Result<>();
}

// Each of the callers takes the next peer until none is left, so one slow peer holds up one caller
// only.
asio::awaitable<void> Reach::State::call_next() {
    while (next < peers.size()) {
        const Peer& peer = peers[next++];
        // No co_await inside ?: because GCC 12 destroys the temporaries of such an expression
        // twice.
        Result<> reached = Error(ErrorCode::timed_out, "not tested: earlier calls took too long");
        if (Steady::now() < until) reached = co_await call(peer);
        if (reached)
            ++outcome.reached;
        else
            outcome.unreached.push_back({peer.rank, peer.host + ": " + reached.error().sentence()});
    }
    if (--callers == 0) done.set_value();
}

// The loop's thread starts last, when everything that it uses exists.
Result<std::unique_ptr<Reach>> Reach::listen(WallClock clock) {
    auto state = std::make_unique<State>(std::move(clock));
    auto listener = listen_on(state->loop, 0);
    if (!listener) return listener.error();
    state->listener = std::move(*listener);
    state->port = state->listener->local_endpoint().port();
    asio::co_spawn(state->loop, state->accept(), asio::detached);
    auto thread =
        start_thread("the calls of the other nodes", [&loop = state->loop] { loop.run(); });
    if (!thread) return thread.error();
    state->thread = std::move(*thread);
    return std::unique_ptr<Reach>(new Reach(std::move(state)));
}

Reach::Reach(std::unique_ptr<State> state) : state_(std::move(state)) {}

// stop() abandons what is under way. The thread must end before the state that it uses does.
Reach::~Reach() {
    state_->loop.stop();
    state_->thread.join();
}

std::uint16_t Reach::port() const { return state_->port; }
const std::string& Reach::word() const { return state_->word; }

Reach::Outcome Reach::call(std::vector<Peer> peers) {
    State& state = *state_;
    if (peers.empty()) return {};
    // The caller waits for a promise, because everything else happens on the loop's thread.
    auto finished = state.done.get_future();
    asio::post(state.loop, [&state, peers = std::move(peers)]() mutable {
        state.peers = std::move(peers);
        state.until = Steady::now() + kCallLimit;
        state.callers = std::min(kAtOnce, state.peers.size());
        for (std::size_t i = 0; i < state.callers; ++i)
            asio::co_spawn(state.loop, state.call_next(), asio::detached);
    });
    finished.wait();
    std::ranges::sort(state.outcome.unreached, {}, &NodeFacts::Unreached::rank);
    return state.outcome;
}

std::optional<std::string> address_towards(const std::string& host) {
    asio::io_context loop;
    std::optional<std::string> address;
    ddprun::resolve(loop, host, kConnectLimit, [&](const Result<Addresses>& found) {
        if (!found) return;
        for (const auto& other : *found) {
            // connect() on a UDP socket sends no packet. It only makes the kernel choose a route,
            // and with it the local address. Port 9 (discard) stands for any port.
            asio::ip::udp::socket socket(loop);
            error_code error;
            socket.connect({other, 9}, error);
            if (error || address) continue;
            const auto own = socket.local_endpoint(error);
            if (!error) address = own.address().to_string();
        }
    });
    loop.run();
    return address;
}

}  // namespace ddprun::launcher
