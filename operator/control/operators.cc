// gRPC's server, and the tunnels of operators (operators.h).
#include "operator/control/operators.h"

#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <latch>
#include <map>
#include <utility>
#include <vector>

#include "base/line_limit.h"
#include "base/loop/file_thread.h"
#include "base/printable.h"
#include "base/system/boot_clock.h"
#include "base/system/locked_program.h"
#include "base/system/start_thread.h"
#include "operator/control/private_socket.h"
#include "operator/control/tunnel.h"
#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kOperators = 32;
// A job that is over sooner needs no private socket, and the start of its workers does not wait for
// one.
constexpr std::chrono::milliseconds kPrivateAfter{200};
constexpr int kRequestLimit = 64 << 10;
constexpr int kRequestsAtOnce = 16;
// An operator's host may vanish without a word.
constexpr int kServerPingEach = 30'000, kServerPingAnswered = 20'000;  // ms
constexpr int kPingsAllowedEach = 5'000;                               // ms; from operators
// More than gRPC takes with its first calls (8, and for moments 14).
constexpr int kServerThreads = 16;

// gRPC starts its threads when it begins to serve. One that it does not get it never asks for
// again, and then it answers nobody any more.
bool threads_to_be_had(int count) {
    std::latch done(1);
    std::vector<Thread> threads;
    while (static_cast<int>(threads.size()) < count) {
        auto thread = start_thread("an operator", [&done] { done.wait(); });
        if (!thread) break;
        threads.push_back(std::move(*thread));
    }
    done.count_down();
    for (Thread& thread : threads) thread.join();
    return static_cast<int>(threads.size()) == count;
}

}  // namespace

struct Operators::State : std::enable_shared_from_this<State> {
    State(asio::io_context& loop, Log log, Duration to_day, OperatorHandlers handlers)
        : loop(loop),
          log(std::move(log)),
          status(handlers.status),
          control(loop, to_day, std::move(handlers)),
          workers(loop),
          fetching(loop),
          opens(loop) {}

    std::string why_not(const Link& link, const Operate& who, const Served& by) const;
    void say_refused(const std::string& by, const std::string& why);
    void say_not_served(const Error& why) const;
    void start();
    struct Ready {
        Tunnel::Socket socket;
        Operate who;
        std::string key;
        std::shared_ptr<void> counted;
    };
    void prepare(Ready ready);
    void admit(std::int64_t number, Ready ready);
    void open_later();
    void open_private();
    void take_private(UniqueFd caller);
    void admit_private(std::int64_t number);
    void gone(std::int64_t number, const std::string& by, const Error& why);
    void close();

    struct Connected {
        std::unique_ptr<Tunnel> tunnel;
        bool visits = false;  // has asked for this node itself
        // Of one who has come through the private socket; it ends when he has gone.
        std::shared_ptr<asio::posix::stream_descriptor> caller = {};
    };
    asio::io_context& loop;
    const Log log;
    const std::function<std::optional<JobStatus>()> status;
    Control control;
    Workers workers;
    FileThread fetching;
    std::unique_ptr<grpc::Server> server;     // from the first operator on
    std::map<std::int64_t, Ready> preparing;  // until the code for them is in memory
    std::map<std::int64_t, Connected> connected;
    std::size_t coming = 0, coming_visitors = 0;  // whose link is being handed over
    std::map<std::int64_t, UniqueFd> preparing_private;
    std::int64_t newest = 0;
    bool is_closed = false;
    LineLimit refusals;
    asio::steady_timer opens;
    std::unique_ptr<PrivateSocket> private_socket;  // while this node leads, and has workers
};

// The port may have been another job's of the same user before.
std::string Operators::State::why_not(const Link& link, const Operate& who,
                                      const Served& by) const {
    if (link.key_for(kTunnelKey, true).empty())
        return "this job has no secret, so it answers no operator; start it with MUNGE, with "
               "--secret-file=PATH or with a ledger in a folder";
    if (who.job != 0 && by.ledger_mark != 0 && who.job != by.ledger_mark)
        return "another job is at this address now";
    if (connected.size() + coming >= kOperators)
        return std::to_string(kOperators) +
               " operators are connected to this node; end one of them";
    if (!server && !threads_to_be_had(kServerThreads))
        return "no thread is to be had on its host (ulimit -u, the pids limit of the cgroup), so "
               "it answers no operator; try again when there is one";
    return {};
}

// In a job without a secret anybody may come so far.
void Operators::State::say_refused(const std::string& by, const std::string& why) {
    const LineLimit::Said said = refusals.say(boot_now(), by + why);
    if (said.unsaid > 0)
        log({Note::Level::warn, std::to_string(said.unsaid) + " more operators were refused"});
    if (said.allowed) log({Note::Level::warn, "refused operator " + by + ": " + why});
}

void Operators::State::say_not_served(const Error& why) const {
    log({Note::Level::warn, "an operator cannot be served: " + why.sentence()});
}

void Operators::State::start() {
    if (server) return;
    // gRPC is never shut down: with the last server it would wait up to 10 s for a poll of its own,
    // which a write has begun that had to wait (1.51, tcp_posix.cc). A node must leave at once.
    grpc_init();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.RegisterService(&control.service());
    builder.RegisterService(&workers.service());
    builder.SetMaxReceiveMessageSize(kRequestLimit);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kRequestsAtOnce);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kServerPingEach);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kServerPingAnswered);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               kPingsAllowedEach);
    server = builder.BuildAndStart();
}

// The file thread gets nothing of the loop but a number: it may outlive both.
void Operators::State::prepare(Ready ready) {
    if (is_closed) return;
    const std::int64_t number = ++newest;
    preparing.emplace(number, std::move(ready));
    fetching.post(fetch_seldom_used, [weak = weak_from_this(), number] {
        const auto self = weak.lock();
        if (!self || self->is_closed) return;
        self->admit(number, std::move(self->preparing.extract(number).mapped()));
    });
}

void Operators::State::admit(std::int64_t number, Ready ready) {
    auto pair = socket_pair();
    if (!pair) return say_not_served(pair.error());
    const std::string by = printable(ready.who.as.node.name);
    auto tunnel = Tunnel::begin(std::move(ready.socket), Tunnel::Side::served, std::move(ready.key),
                                std::move(pair->first),
                                [weak = weak_from_this(), number, by](const Error& why) {
                                    if (const auto self = weak.lock()) self->gone(number, by, why);
                                });
    if (!tunnel) return say_not_served(tunnel.error());
    log({Note::Level::debug, by + " is connected with ddpctl"});
    start();
    connected[number] = {std::move(*tunnel), ready.who.this_node};
    grpc::AddInsecureChannelFromFd(server.get(), pair->second.release());
}

void Operators::State::open_later() {
    if (private_socket || is_closed) return;
    opens.expires_after(kPrivateAfter);
    opens.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
        const auto self = weak.lock();
        if (self && !cancelled && !self->is_closed) self->open_private();
    });
}

// Another node that leads has its own.
void Operators::State::open_private() {
    const auto job = status();
    if (!job) return;
    auto opened = PrivateSocket::open(loop, job->run_id,
                                      [this](UniqueFd caller) { take_private(std::move(caller)); });
    if (opened)
        private_socket = std::move(*opened);
    else
        log({Note::Level::debug,
             "ddpctl cannot ask this job without its secret: " + opened.error().sentence()});
}

// It is our own user: the kernel has reported that.
void Operators::State::take_private(UniqueFd caller) {
    if (is_closed || connected.size() + coming >= kOperators) return;
    if (!server && !threads_to_be_had(kServerThreads)) return;
    const std::int64_t number = ++newest;
    preparing_private.emplace(number, std::move(caller));
    fetching.post(fetch_seldom_used, [weak = weak_from_this(), number] {
        const auto self = weak.lock();
        if (self && !self->is_closed) self->admit_private(number);
    });
}

void Operators::State::admit_private(std::int64_t number) {
    UniqueFd caller = std::move(preparing_private.extract(number).mapped());
    UniqueFd watched(::fcntl(caller.get(), F_DUPFD_CLOEXEC, 3));
    if (!watched) return;
    start();
    auto descriptor = std::make_shared<asio::posix::stream_descriptor>(loop, watched.release());
    descriptor->async_wait(asio::posix::stream_descriptor::wait_error,
                           [weak = weak_from_this(), number](const boost::system::error_code& cut) {
                               const auto self = weak.lock();
                               if (self && !cut) self->connected.erase(number);
                           });
    connected[number] = {nullptr, true, std::move(descriptor)};
    grpc::AddInsecureChannelFromFd(server.get(), caller.release());
}

void Operators::State::gone(std::int64_t number, const std::string& by, const Error& why) {
    connected.erase(number);
    if (why.code() != ErrorCode::closed)
        log({Note::Level::warn, "operator " + by + " is cut: it " + why.sentence()});
}

void Operators::State::close() {
    is_closed = true;
    opens.cancel();
    private_socket.reset();
    fetching.let_go();
    preparing.clear();
    preparing_private.clear();
    control.close();
    workers.close();
    connected.clear();
    if (server) server->Shutdown(std::chrono::system_clock::now());
    server.reset();
}

Operators::Operators(asio::io_context& loop, Log log, Duration to_day, OperatorHandlers handlers)
    : state_(std::make_shared<State>(loop, std::move(log), to_day, std::move(handlers))) {}

Operators::~Operators() { state_->close(); }

void Operators::take(const std::shared_ptr<Link>& link, const Operate& who, const Served& served) {
    link->promote(kNodeFrameLimit, {[](std::string_view) {}, [](const Error&) {}});
    const std::string by = printable(who.as.node.name);
    const std::string refusal = state_->why_not(*link, who, served);
    if (!refusal.empty()) {
        state_->say_refused(by, refusal);
        link->send(encode(ToNode(Refused{refusal})));
        return link->finish();
    }
    link->send(encode(ToNode(Standing{served.node, served.leads, kNoGeneration, kNoEntry})));
    // Counted until the link has been handed over or has ended: then nobody holds this any more.
    const std::size_t visits = who.this_node ? 1 : 0;
    ++state_->coming;
    state_->coming_visitors += visits;
    const std::shared_ptr<void> counted(nullptr, [visits, weak = std::weak_ptr(state_)](void*) {
        const auto self = weak.lock();
        if (!self) return;
        --self->coming;
        self->coming_visitors -= visits;
    });
    link->hand_over([weak = std::weak_ptr(state_), counted, who,
                     key = link->key_for(kTunnelKey, true)](Link::Socket socket) {
        if (const auto self = weak.lock()) self->prepare({std::move(socket), who, key, counted});
    });
}

void Operators::ended(const Ending& ending) { state_->control.ended(ending); }

void Operators::serve_workers(std::optional<OwnWorkers> workers) {
    if (workers) state_->open_later();
    state_->workers.serve(std::move(workers));
}

bool Operators::has_visitors() const {
    return state_->coming_visitors > 0 ||
           std::ranges::any_of(state_->connected,
                               [](const auto& one) { return one.second.visits; });
}

void Operators::close() { state_->close(); }

}  // namespace ddprun::rendezvous
