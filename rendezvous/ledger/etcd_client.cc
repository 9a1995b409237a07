// The requests to etcd: which endpoint is asked, for how long, and what a failure means.
#include "rendezvous/ledger/etcd_client.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <stdlib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/loop/resolve.h"
#include "proto/etcd.grpc.pb.h"
#include "rendezvous/ledger/async_rpc.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

namespace {

constexpr int kLongestPauseMs = 500;  // between two attempts of a gRPC channel to connect

// gRPC's library runs while one of these exists. It reads the variable once, when it starts.
// Without the variable it would set up a resolver that is never used.
struct Library {
    Library() {
        ::setenv("GRPC_DNS_RESOLVER", "native", 0);
        grpc_init();
    }
    ~Library() { grpc_shutdown_blocking(); }
};

std::shared_ptr<grpc::Channel> open_channel(const asio::ip::address& address, std::uint16_t port) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    // A new channel opens a new connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // ask() tries again by itself
    arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestPauseMs);
    // A whole ledger may be larger than gRPC's default of 4 MiB.
    arguments.SetMaxReceiveMessageSize(-1);
    const std::string target = address.is_v6()
                                   ? "ipv6:[" + address.to_string() + "]:" + std::to_string(port)
                                   : "ipv4:" + address.to_string() + ":" + std::to_string(port);
    return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// gRPC's message tells what it was doing and ends with the reason; only the reason is of interest.
std::string last_part(const std::string& message) {
    constexpr std::string_view kBefore = "remote host: ";
    const auto at = message.rfind(kBefore);
    return at == std::string::npos ? message : message.substr(at + kBefore.size());
}

// The reason of a failure in words, with a hint where the fix is known.
std::string reason(const grpc::Status& status, Duration limit) {
    switch (status.error_code()) {
        case grpc::StatusCode::DEADLINE_EXCEEDED:
            return "no answer within " + ddprun::to_text(limit);
        case grpc::StatusCode::INVALID_ARGUMENT:
            return status.error_message() +
                   " (is the entry larger than etcd's --max-request-bytes?)";
        case grpc::StatusCode::RESOURCE_EXHAUSTED:
            return status.error_message() +
                   " (is etcd full? compact and defragment it, or raise --quota-backend-bytes)";
        case grpc::StatusCode::UNAUTHENTICATED:
        case grpc::StatusCode::PERMISSION_DENIED:
            return status.error_message() +
                   " (this etcd requires a user name, which ddprun does not support)";
        case grpc::StatusCode::UNIMPLEMENTED:
            return "this is not etcd version 3";
        default:
            return last_part(status.error_message());
    }
}

}  // namespace

struct EtcdClient::State : std::enable_shared_from_this<EtcdClient::State> {
    using Stub = etcdserverpb::KV::Stub;

    State(asio::io_context& l, std::vector<EtcdEndpoint> e, Duration d)
        : loop(l), endpoints(std::move(e)), limit(d) {}

    template <class Request, class Response>
    using Rpc = void (Stub::async::*)(grpc::ClientContext*, const Request*, Response*,
                                      std::function<void(grpc::Status)>);

    template <class Request, class Response>
    static Answer<Response> ask(std::shared_ptr<State> self, Request request,
                                Rpc<Request, Response> rpc);
    template <class Request, class Response>
    static asio::awaitable<std::optional<Response>> try_channel(std::shared_ptr<State> self,
                                                                const Request& request,
                                                                Rpc<Request, Response> rpc,
                                                                std::string& why);
    Error closed() const { return Error(ErrorCode::closed, "etcd: the client has been closed"); }

    const Library library;  // declared first, so that it is destroyed last
    asio::io_context& loop;
    const std::vector<EtcdEndpoint> endpoints;
    const Duration limit;
    std::size_t first = 0;                   // index of the endpoint that answered last
    std::shared_ptr<grpc::Channel> channel;  // to that endpoint; null: to be opened
    const std::shared_ptr<RpcCalls> calls = std::make_shared<RpcCalls>();
    bool over = false;  // the EtcdClient is destroyed
};

// One call on the open channel. If it fails, the channel is dropped and `why` has the reason.
template <class Request, class Response>
asio::awaitable<std::optional<Response>> EtcdClient::State::try_channel(std::shared_ptr<State> self,
                                                                        const Request& request,
                                                                        Rpc<Request, Response> rpc,
                                                                        std::string& why) {
    const auto channel = self->channel;
    const auto stub = etcdserverpb::KV::NewStub(channel);
    Response response;
    grpc::ClientContext context;
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(self->limit).count();
    // A monotonic deadline: a step of the time of day must not end a call.
    context.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait, GPR_TIMESPAN)));
    const grpc::Status status = co_await async_rpc(self->calls, context, [&](auto done) {
        (stub->async()->*rpc)(&context, &request, &response, std::move(done));
    });
    if (status.ok()) co_return response;
    why = reason(status, self->limit);
    // Another call may have opened a new one meanwhile.
    if (self->channel == channel) self->channel.reset();
    co_return std::nullopt;
}

// Asks each endpoint once, at each of its addresses once. The endpoint that answered last comes
// first, on its open connection.
template <class Request, class Response>
EtcdClient::Answer<Response> EtcdClient::State::ask(std::shared_ptr<State> self, Request request,
                                                    Rpc<Request, Response> rpc) {
    std::string failures, why;
    const std::size_t begin = self->first;
    for (std::size_t i = 0; i < self->endpoints.size(); ++i) {
        const std::size_t index = (begin + i) % self->endpoints.size();
        const EtcdEndpoint& endpoint = self->endpoints[index];
        // The open channel leads to another endpoint.
        if (index != self->first) self->channel.reset();
        self->first = index;
        bool asked = false;
        if (self->channel) {
            if (auto got = co_await try_channel(self, request, rpc, why)) co_return *got;
            asked = true;
        }
        const auto addresses = co_await resolve(endpoint.host, self->limit);
        if (!addresses && !asked) why = addresses.error().sentence();
        // A connection that has just failed says nothing about the server, which may have been
        // restarted. So the same endpoint is tried again on a new connection.
        for (std::size_t a = 0; addresses && a < addresses->size() && !self->over; ++a) {
            self->channel = open_channel((*addresses)[a], endpoint.port);
            if (auto got = co_await try_channel(self, request, rpc, why)) co_return *got;
        }
        if (self->over) co_return self->closed();
        failures += (failures.empty() ? "" : "; ") + to_text(endpoint) + ": " + why;
    }
    co_return Error(
        ErrorCode::unavailable,
        "etcd " + failures +
            "; check that etcd runs there, or choose another with --ledger=etcd:HOST:PORT,…");
}

EtcdClient::EtcdClient(asio::io_context& loop, std::vector<EtcdEndpoint> endpoints, Duration limit)
    : state_(std::make_shared<State>(loop, std::move(endpoints), limit)) {}

EtcdClient::~EtcdClient() {
    // Coroutines may still run; they hold the state and see that it is over.
    state_->over = true;
    state_->calls->cancel_all();
}

EtcdClient::Answer<std::vector<EtcdClient::KeyValue>> EtcdClient::range(std::string from,
                                                                        std::string to) {
    using namespace etcdserverpb;
    RangeRequest request;
    request.set_key(std::move(from));
    request.set_range_end(std::move(to));
    auto got = co_await State::ask<RangeRequest, RangeResponse>(state_, std::move(request),
                                                                &KV::Stub::async::Range);
    if (!got) co_return got.error();
    std::vector<KeyValue> found;
    for (auto& pair : *got->mutable_kvs())
        found.push_back({std::move(*pair.mutable_key()), std::move(*pair.mutable_value())});
    co_return found;
}

EtcdClient::Answer<std::string> EtcdClient::create(std::string key, std::string value) {
    using namespace etcdserverpb;
    TxnRequest request;
    // If the key has no version, it does not exist: then put it, else read it. etcd does both in
    // one step.
    Compare& absent = *request.add_compare();
    absent.set_result(Compare::EQUAL);
    absent.set_target(Compare::VERSION);
    absent.set_key(key);
    absent.set_version(0);
    PutRequest& put = *request.add_success()->mutable_request_put();
    put.set_key(key);
    put.set_value(value);
    request.add_failure()->mutable_request_range()->set_key(key);
    auto got = co_await State::ask<TxnRequest, TxnResponse>(state_, std::move(request),
                                                            &KV::Stub::async::Txn);
    if (!got) co_return got.error();
    if (got->succeeded()) co_return value;
    if (got->responses_size() == 1 && got->responses(0).response_range().kvs_size() == 1)
        co_return got->responses(0).response_range().kvs(0).value();
    co_return Error(ErrorCode::malformed, "etcd: unexpected answer to a transaction");
}

std::string EtcdClient::name() const { return "etcd:" + to_text(state_->endpoints); }

}  // namespace ddprun::rendezvous
