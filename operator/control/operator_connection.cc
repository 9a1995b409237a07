// Calls nodes, until a leader has proved itself (operator_connection.h).
#include "operator/control/operator_connection.h"

#include <grpcpp/create_channel_posix.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

#include "base/loop/file_thread.h"
#include "base/loop/resolve.h"
#include "base/printable.h"
#include "base/system/boot_clock.h"
#include "base/system/start_thread.h"
#include "operator/control/operators.h"
#include "operator/control/private_socket.h"
#include "operator/control/tunnel.h"
#include "rendezvous/link/node_handshake.h"
#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr int kElsewheres = 8;
constexpr Duration kOneNode = std::chrono::seconds{5};  // for all of one call
// So long the answer of one node is waited for before the next one is called, too.
constexpr Duration kNextNode = std::chrono::milliseconds{50};
// So long a leader may be silent while other nodes answer.
constexpr Duration kSilentLeader = std::chrono::seconds{1};
constexpr std::size_t kReasonsTold = 6;
constexpr int kPingEach = 10'000, kPingAnswered = 10'000;  // ms; control.cc allows it
constexpr int kReplyLimit = 64 << 20;                      // of ten thousands of nodes

grpc::ChannelArguments channel_arguments() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEach);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswered);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
    arguments.SetMaxReceiveMessageSize(kReplyLimit);
    return arguments;
}

std::string text(const CallTarget& node) {
    const bool v6 = node.host.find(':') != std::string::npos;
    return (v6 ? "[" + node.host + "]" : node.host) + ":" + std::to_string(node.port);
}

std::string joined(const std::vector<std::string>& texts, const char* between) {
    std::string all;
    for (std::size_t i = 0; i < std::min(texts.size(), kReasonsTold); ++i)
        all += (i == 0 ? "" : between) + texts[i];
    if (texts.size() > kReasonsTold)
        all += " and " + std::to_string(texts.size() - kReasonsTold) + " more";
    return all;
}

}  // namespace

struct OperatorConnection::State {
    explicit State(Target target)
        : target(std::move(target)),
          files(loop),
          secrets(loop, files, this->target.identity),
          news(loop) {}
    ~State();

    // One node that is asked, and whom it names.
    struct Call {
        explicit Call(asio::io_context& loop) : changed(loop) {}
        CallTarget at;
        asio::steady_timer changed;  // cancelled when there is an answer
        std::shared_ptr<Link> link;
        std::unique_ptr<NodeHandshake> handshake;
        bool settled = false, over = false;
        std::optional<CallTarget> elsewhere;
    };

    Result<> open(Duration limit);
    void talk_through(UniqueFd connected);
    Error why_nobody() const;
    asio::awaitable<void> find();
    bool is_decided() const;
    asio::awaitable<void> wait_for_news(Duration limit);
    Call& start(const CallTarget& node);
    asio::awaitable<void> follow(Call& call, CallTarget node);
    asio::awaitable<void> try_node(Call& call, CallTarget node);
    asio::awaitable<void> ask(Call& call, tcp::socket socket, CallTarget node);
    void answered(Call& call, std::string_view body);
    void settle(Call& call, std::string why);
    void unreached(const CallTarget& node, const std::string& why) {
        std::string reason = text(node) + " (" + why + ")";
        if (std::ranges::count(not_reached, reason) == 0) not_reached.push_back(std::move(reason));
    }
    Duration left(Duration limit) const { return std::min(limit, deadline - boot_now()); }

    const Target target;
    asio::io_context loop;
    FileThread files;
    Secrets secrets;
    asio::steady_timer news;  // cancelled when a call is over
    Time begun{}, deadline{};
    std::vector<std::unique_ptr<Call>> calls;
    std::vector<std::string> not_reached, said;  // why each call came to nothing
    int refusals = 0;
    bool was_silent = false;            // one did not answer in its time
    bool is_answered = false;           // by a node of the job that does not lead
    bool knows_no_leader = false;       // one of these
    std::optional<tcp::socket> socket;  // of a leader that has proved itself
    std::shared_ptr<Link> link;         // to it
    std::string key;
    // Afterwards.
    std::unique_ptr<Tunnel> tunnel;
    std::unique_ptr<control::Control::Stub> stub;
    std::unique_ptr<control::Workers::Stub> workers;
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
    Thread thread;
};

OperatorConnection::State::~State() {
    stub.reset();
    workers.reset();
    work.reset();
    loop.stop();
    if (thread.joinable()) thread.join();
    tunnel.reset();
    for (const auto& call : calls)
        if (call->link) call->link->drop();
}

Result<> OperatorConnection::State::open(Duration limit) {
    begun = boot_now();
    deadline = begun + limit;
    bool over = false;
    asio::co_spawn(loop, find(), [&over](std::exception_ptr failed) {
        over = true;
        if (failed) std::rethrow_exception(failed);
    });
    while (!over) loop.run_one();
    if (!socket) return why_nobody();
    for (const auto& call : calls)
        if (call->link && call->link != link) call->link->drop();
    loop.restart();  // it may have run out of work
    auto pair = socket_pair();
    if (!pair) return pair.error();
    auto begun_tunnel = Tunnel::begin(std::move(*socket), Tunnel::Side::operators, key,
                                      std::move(pair->first), [](const Error&) {});
    if (!begun_tunnel) return begun_tunnel.error();
    tunnel = std::move(*begun_tunnel);
    talk_through(std::move(pair->second));
    work.emplace(loop.get_executor());
    auto started = start_thread("talking to the job", [this] { loop.run(); });
    if (!started) return started.error();
    thread = std::move(*started);
    return {};
}

void OperatorConnection::State::talk_through(UniqueFd connected) {
    const auto channel =
        grpc::CreateCustomInsecureChannelFromFd("job", connected.release(), channel_arguments());
    stub = control::Control::NewStub(channel);
    workers = control::Workers::NewStub(channel);
}

// Behind one that cannot be reached may be the leader.
Error OperatorConnection::State::why_nobody() const {
    std::vector<std::string> silent_ones = not_reached;
    for (const auto& call : calls)
        if (!call->over)
            silent_ones.push_back(text(call->at) + " (no answer for " +
                                  to_text(boot_now() - begun) + ")");
    const std::string silent =
        silent_ones.empty() ? "" : "nobody answers at " + joined(silent_ones, ", ");
    const std::string all =
        joined(said, "; ") + (said.empty() || silent.empty() ? "" : "; ") + silent;
    if (is_answered) return {ErrorCode::timed_out, all};
    const bool only_refusals =
        refusals > 0 &&
        (target.one_node || (not_reached.empty() && refusals == static_cast<int>(said.size())));
    if (only_refusals) return {ErrorCode::refused, all};
    const bool is_known = silent_ones.size() == not_reached.size() && said.empty() && !was_silent;
    if (is_known && !not_reached.empty()) return {ErrorCode::closed, all};
    return {ErrorCode::unavailable, !all.empty()           ? all
                                    : target.nodes.empty() ? "no node of this job is known"
                                                           : "there was no time to ask"};
}

asio::awaitable<void> OperatorConnection::State::find() {
    for (const CallTarget& node : target.nodes) {
        const Call& call = start(node);
        const Time until = boot_now() + kNextNode;
        while (!call.over && !socket && boot_now() < std::min(until, deadline))
            co_await wait_for_news(until - boot_now());
        if (socket || boot_now() >= deadline) co_return;
    }
    while (!is_decided())
        co_await wait_for_news(is_answered ? begun + kSilentLeader - boot_now()
                                           : deadline - boot_now());
}

bool OperatorConnection::State::is_decided() const {
    const Time now = boot_now();
    const bool all_over = std::ranges::all_of(calls, [](const auto& call) { return call->over; });
    return socket || all_over || now >= deadline || knows_no_leader ||
           (is_answered && now >= begun + kSilentLeader);
}

asio::awaitable<void> OperatorConnection::State::wait_for_news(Duration limit) {
    error_code cancelled;
    news.expires_after(left(limit));
    co_await news.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

OperatorConnection::State::Call& OperatorConnection::State::start(const CallTarget& node) {
    Call& call = *calls.emplace_back(std::make_unique<Call>(loop));
    asio::co_spawn(loop, follow(call, node), [this, &call](std::exception_ptr failed) {
        call.over = true;
        news.cancel();
        if (failed) std::rethrow_exception(failed);
    });
    return call;
}

// A node that follows another one names it.
asio::awaitable<void> OperatorConnection::State::follow(Call& call, CallTarget node) {
    co_await try_node(call, node);
    for (int i = 0; i < kElsewheres && call.elsewhere && !socket; ++i) {
        const CallTarget next = *std::exchange(call.elsewhere, std::nullopt);
        co_await try_node(call, next);
    }
}

asio::awaitable<void> OperatorConnection::State::try_node(Call& call, CallTarget node) {
    if (boot_now() >= deadline) co_return;
    call.at = node;
    auto addresses = co_await resolve(node.host, left(kOneNode));
    if (!addresses && !node.if_unknown.empty())
        addresses = co_await resolve(node.if_unknown, left(kOneNode));
    if (!addresses) {
        was_silent |= addresses.error().code() != ErrorCode::not_found;
        unreached(node, addresses.error().sentence());
        co_return;
    }
    for (const asio::ip::address& address : *addresses) {
        if (socket) co_return;
        const auto to = std::make_shared<tcp::socket>(loop);
        error_code error;
        asio::steady_timer timer(loop, left(kOneNode));
        // The timer's handler may run after this one.
        timer.async_wait([weak = std::weak_ptr(to)](error_code aborted) {
            const auto late = weak.lock();
            if (!aborted && late) late->close(aborted);
        });
        co_await to->async_connect({address, node.port},
                                   asio::redirect_error(asio::use_awaitable, error));
        timer.cancel();
        was_silent |= !to->is_open();
        if (error || !to->is_open())
            unreached(node, to->is_open() ? error.message() : "no answer");
        else
            co_await ask(call, std::move(*to), node);
        if (call.elsewhere) co_return;
    }
}

asio::awaitable<void> OperatorConnection::State::ask(Call& call, tcp::socket to, CallTarget node) {
    call.settled = false;
    call.link = std::make_shared<Link>(
        std::move(to), kLeaderFrameLimit,
        Link::Handlers{[&call](std::string_view body) { call.handshake->take(body); },
                       [this, &call](const Error& why) {
                           if (!call.handshake->ended()) settle(call, why.sentence());
                       }});
    call.handshake = std::make_unique<NodeHandshake>(
        secrets, call.link, target.opening, true,
        NodeHandshake::Handlers{[this, &call](std::string_view body) { answered(call, body); },
                                [this, &call](const Error& why) {
                                    if (why.code() == ErrorCode::refused && !call.settled)
                                        ++refusals;
                                    settle(call, why.sentence());
                                }});
    call.link->start(Duration{0});
    call.handshake->start();
    if (!call.settled) {
        error_code cancelled;
        call.changed.expires_after(left(kOneNode));
        co_await call.changed.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    if (!call.settled) {
        call.settled = was_silent = true;
        unreached(node, "no answer");
    }
    if (call.link != link) call.link->drop();
}

void OperatorConnection::State::settle(Call& call, std::string why) {
    if (std::exchange(call.settled, true)) return;
    if (!why.empty()) said.push_back(printable(why));
    call.changed.cancel();
    news.cancel();
}

// The first message of a node that has proved itself, or of one that asks for no proof.
void OperatorConnection::State::answered(Call& call, std::string_view body) {
    if (call.settled || link) return;
    const std::string peer = call.link->peer();
    const auto message = decode_to_node(body);
    if (!message) return settle(call, peer + ": " + message.error().sentence());
    if (const auto* refused = std::get_if<Refused>(&*message)) {
        // One that has proved itself may answer later: it has too many operators, or leads another
        // job where this one was.
        if (call.link->key_for(kTunnelKey, false).empty()) ++refusals;
        return settle(call, peer + " refuses: " + refused->sentence);
    }
    if (const auto* other = std::get_if<Elsewhere>(&*message)) {
        if (target.opening.this_node)
            return settle(call, peer + " does not answer for its own workers");
        is_answered = true;
        knows_no_leader |= other->address.empty();
        if (other->address.empty())
            return settle(call, peer + " does not lead, and knows no leader now");
        call.elsewhere = CallTarget{other->address, other->port};
        return settle(call, {});
    }
    key = call.link->key_for(kTunnelKey, false);
    if (!std::holds_alternative<Standing>(*message) || key.empty())
        return settle(call, peer + " is no leader that answers operators");
    link = call.link;
    link->hand_over([this, &call](Link::Socket taken) {
        socket.emplace(std::move(taken));
        settle(call, {});
    });
}

OperatorConnection::OperatorConnection(std::unique_ptr<State> state) : state_(std::move(state)) {}
OperatorConnection::~OperatorConnection() = default;

Result<std::unique_ptr<OperatorConnection>> OperatorConnection::open(Target target,
                                                                     Duration limit) {
    auto state = std::make_unique<State>(std::move(target));
    if (const auto opened = state->open(limit); !opened) return opened.error();
    return std::unique_ptr<OperatorConnection>(new OperatorConnection(std::move(state)));
}

Result<std::unique_ptr<OperatorConnection>> OperatorConnection::open_private(
    const std::string& path) {
    auto called = call_private(path);
    if (!called) return called.error();
    auto state = std::make_unique<State>(Target{});
    state->talk_through(std::move(*called));
    return std::unique_ptr<OperatorConnection>(new OperatorConnection(std::move(state)));
}

control::Control::Stub& OperatorConnection::stub() { return *state_->stub; }
control::Workers::Stub& OperatorConnection::workers() { return *state_->workers; }

}  // namespace ddprun::rendezvous
