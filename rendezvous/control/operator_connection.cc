// One call after the other, until a leader has proved itself (operator_connection.h).
#include "rendezvous/control/operator_connection.h"

#include <grpcpp/create_channel_posix.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/loop/file_thread.h"
#include "base/loop/resolve.h"
#include "base/printable.h"
#include "base/system/boot_clock.h"
#include "rendezvous/control/operators.h"
#include "rendezvous/control/tunnel.h"
#include "rendezvous/link/node_handshake.h"
#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr int kElsewheres = 8;
constexpr Duration kOneNode = std::chrono::seconds{5};     // for all of one call
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

}  // namespace

struct OperatorConnection::State {
    explicit State(Target target)
        : target(std::move(target)),
          files(loop),
          secrets(loop, files, this->target.identity),
          changed(loop) {}
    ~State();

    Result<> open(Duration limit);
    asio::awaitable<void> find();
    asio::awaitable<bool> try_node(CallTarget node);
    asio::awaitable<bool> ask(tcp::socket socket, std::string name);
    void answered(std::string_view body);
    void settle(std::string why);
    asio::awaitable<bool> wait(Duration limit);
    void note(std::string why) {
        reasons += (reasons.empty() ? "" : "; ") + std::move(why);
        ++answers;
    }
    Duration left(Duration limit) const { return std::min(limit, deadline - boot_now()); }

    const Target target;
    asio::io_context loop;
    FileThread files;
    Secrets secrets;
    asio::steady_timer changed;  // cancelled when the call that is under way has its answer
    Time deadline{};
    std::string reasons;  // why each call came to nothing
    int answers = 0, refusals = 0;
    // The call that is under way.
    std::shared_ptr<Link> link;
    std::unique_ptr<NodeHandshake> handshake;
    bool settled = false;
    std::optional<CallTarget> elsewhere;
    std::optional<tcp::socket> socket;  // of a leader that has proved itself
    std::string key;
    // Afterwards.
    std::unique_ptr<Tunnel> tunnel;
    std::unique_ptr<control::Control::Stub> stub;
    std::unique_ptr<control::Workers::Stub> workers;
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
    std::thread thread;
};

OperatorConnection::State::~State() {
    stub.reset();
    workers.reset();
    work.reset();
    loop.stop();
    if (thread.joinable()) thread.join();
    tunnel.reset();
    if (link) link->drop();
}

Result<> OperatorConnection::State::open(Duration limit) {
    deadline = boot_now() + limit;
    bool over = false;
    asio::co_spawn(loop, find(), [&over](std::exception_ptr failed) {
        over = true;
        if (failed) std::rethrow_exception(failed);
    });
    while (!over) loop.run_one();
    // Behind one that cannot be reached may be the leader.
    if (!socket) {
        const bool refused = refusals > 0 && (refusals == answers || target.one_node);
        return Error(refused ? ErrorCode::refused : ErrorCode::unavailable, reasons);
    }
    loop.restart();  // it has run out of work
    auto pair = socket_pair();
    if (!pair) return pair.error();
    tunnel = std::make_unique<Tunnel>(std::move(*socket), Tunnel::Side::operators, key,
                                      std::move(pair->first), [](const Error&) {});
    const auto channel =
        grpc::CreateCustomInsecureChannelFromFd("job", pair->second.release(), channel_arguments());
    stub = control::Control::NewStub(channel);
    workers = control::Workers::NewStub(channel);
    work.emplace(loop.get_executor());
    thread = std::thread([this] { loop.run(); });
    return {};
}

asio::awaitable<void> OperatorConnection::State::find() {
    for (const CallTarget& node : target.nodes) {
        if (co_await try_node(node)) co_return;
        for (int i = 0; i < kElsewheres && elsewhere; ++i) {
            const CallTarget next = *std::exchange(elsewhere, std::nullopt);
            if (co_await try_node(next)) co_return;
        }
    }
    if (reasons.empty())
        note(target.nodes.empty() ? "no node of this job is known" : "there was no time to ask");
}

// True: `socket` is that of the leader.
asio::awaitable<bool> OperatorConnection::State::try_node(CallTarget node) {
    const std::string name = node.host + ":" + std::to_string(node.port);
    if (boot_now() >= deadline) co_return false;
    auto addresses = co_await resolve(node.host, left(kOneNode));
    if (!addresses && !node.if_unknown.empty())
        addresses = co_await resolve(node.if_unknown, left(kOneNode));
    if (!addresses) {
        note(addresses.error().sentence());
        co_return false;
    }
    for (const asio::ip::address& address : *addresses) {
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
        if (error || !to->is_open())
            note(name + ": " + (to->is_open() ? error.message() : "no answer"));
        else if (co_await ask(std::move(*to), name))
            co_return true;
    }
    co_return false;
}

asio::awaitable<bool> OperatorConnection::State::ask(tcp::socket to, std::string name) {
    settled = false;
    link = std::make_shared<Link>(
        std::move(to), kLeaderFrameLimit,
        Link::Handlers{[this](std::string_view body) { handshake->take(body); },
                       [this](const Error& why) { settle(why.sentence()); }});
    handshake = std::make_unique<NodeHandshake>(
        secrets, link, target.opening, true,
        NodeHandshake::Handlers{[this](std::string_view body) { answered(body); },
                                [this](const Error& why) {
                                    if (why.code() == ErrorCode::refused && !settled) ++refusals;
                                    settle(why.sentence());
                                }});
    link->start(Duration{0});
    handshake->start();
    if (!co_await wait(kOneNode)) settle(name + " does not answer");
    link->drop();
    co_return socket.has_value();
}

// Waits until settle() was called.
asio::awaitable<bool> OperatorConnection::State::wait(Duration limit) {
    error_code cancelled;
    if (!settled) {
        changed.expires_after(left(limit));
        co_await changed.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    co_return settled;
}

void OperatorConnection::State::settle(std::string why) {
    if (std::exchange(settled, true)) return;
    if (!why.empty()) note(printable(why));
    changed.cancel();
}

// The first message of a leader that has proved itself, or of one that asks for no proof.
void OperatorConnection::State::answered(std::string_view body) {
    if (settled) return;
    const auto message = decode_to_node(body);
    if (!message) return settle(link->peer() + ": " + message.error().sentence());
    if (const auto* refused = std::get_if<Refused>(&*message)) {
        // One that has proved itself may answer later: it has too many operators, or leads another
        // job where this one was.
        if (link->key_for(kTunnelKey, false).empty()) ++refusals;
        return settle(link->peer() + " refuses: " + refused->sentence);
    }
    if (const auto* other = std::get_if<Elsewhere>(&*message)) {
        if (target.opening.this_node)
            return settle(link->peer() + " does not answer for its own workers");
        if (other->address.empty())
            return settle(link->peer() + " does not lead, and knows no leader now");
        elsewhere = CallTarget{other->address, other->port};
        return settle({});
    }
    key = link->key_for(kTunnelKey, false);
    if (!std::holds_alternative<Standing>(*message) || key.empty())
        return settle(link->peer() + " is no leader that answers operators");
    link->hand_over([this](Link::Socket taken) {
        socket.emplace(std::move(taken));
        settle({});
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

control::Control::Stub& OperatorConnection::stub() { return *state_->stub; }
control::Workers::Stub& OperatorConnection::workers() { return *state_->workers; }

}  // namespace ddprun::rendezvous
