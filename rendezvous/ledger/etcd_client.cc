// The requests to etcd: which endpoint is asked, for how long, and what a failure means.
#include "rendezvous/ledger/etcd_client.h"

#include <string.h>

#include <optional>
#include <utility>

#include "base/loop/resolve.h"
#include "proto/etcd.grpc.pb.h"
#include "rendezvous/ledger/async_rpc.h"
#include "rendezvous/ledger/etcd_channel.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

struct EtcdClient::State : std::enable_shared_from_this<EtcdClient::State> {
    using Stub = etcdserverpb::KV::Stub;
    using Auth = etcdserverpb::Auth::Stub;

    State(asio::io_context& l, LedgerPlace p, LedgerAccessPointer a, Duration d)
        : loop(l), place(std::move(p)), access(std::move(a)), limit(d) {}

    // A method of the stub's asynchronous half.
    template <class Of, class Request, class Response>
    using Rpc = void (Of::async::*)(grpc::ClientContext*, const Request*, Response*,
                                    std::function<void(grpc::Status)>);

    template <class Request, class Response>
    static Answer<Response> ask(std::shared_ptr<State> self, Request request,
                                Rpc<Stub, Request, Response> rpc);
    template <class Request, class Response>
    static asio::awaitable<std::optional<Response>> try_channel(std::shared_ptr<State> self,
                                                                const Request& request,
                                                                Rpc<Stub, Request, Response> rpc,
                                                                EtcdFailure& failure);
    template <class Of, class Request, class Response>
    static asio::awaitable<grpc::Status> call(std::shared_ptr<State> self,
                                              std::shared_ptr<grpc::Channel> channel,
                                              const Request& request, Response& response,
                                              Rpc<Of, Request, Response> rpc);
    static asio::awaitable<grpc::Status> log_in(std::shared_ptr<State> self,
                                                std::shared_ptr<grpc::Channel> channel);
    bool has_user() const { return access && !access->user.empty(); }
    Error closed() const { return Error(ErrorCode::closed, "etcd: the client has been closed"); }

    const EtcdLibrary library;  // declared first, so that it is destroyed last
    asio::io_context& loop;
    const LedgerPlace place;
    const LedgerAccessPointer access;
    const Duration limit;
    std::size_t first = 0;                   // index of the endpoint that answered last
    std::shared_ptr<grpc::Channel> channel;  // to that endpoint; null: to be opened
    // Of the user; empty: etcd has no users. None: to be asked for.
    std::optional<std::string> token;
    const std::shared_ptr<RpcCalls> calls = std::make_shared<RpcCalls>();
    bool over = false;  // the EtcdClient is destroyed
};

// One request on a channel, with the user's token if there is one.
template <class Of, class Request, class Response>
asio::awaitable<grpc::Status> EtcdClient::State::call(std::shared_ptr<State> self,
                                                      std::shared_ptr<grpc::Channel> channel,
                                                      const Request& request, Response& response,
                                                      Rpc<Of, Request, Response> rpc) {
    Of stub(channel);
    grpc::ClientContext context;
    if (self->token && !self->token->empty()) context.AddMetadata("token", *self->token);
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(self->limit).count();
    // A monotonic deadline: a step of the time of day must not end a call.
    context.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait, GPR_TIMESPAN)));
    co_return co_await async_rpc(self->calls, context, [&](auto done) {
        (stub.async()->*rpc)(&context, &request, &response, std::move(done));
    });
}

// Asks for a token. Where etcd has no users none is needed, as with etcd's own clients.
asio::awaitable<grpc::Status> EtcdClient::State::log_in(std::shared_ptr<State> self,
                                                        std::shared_ptr<grpc::Channel> channel) {
    using namespace etcdserverpb;
    AuthenticateRequest request;
    AuthenticateResponse response;
    self->token.reset();
    request.set_name(self->access->user);
    request.set_password(std::string(std::string_view(self->access->password)));
    const grpc::Status status =
        co_await call<Auth>(self, channel, request, response, &Auth::async::Authenticate);
    std::string& sent = *request.mutable_password();
    ::explicit_bzero(sent.data(), sent.size());
    if (!status.ok() && !has_no_users(status)) co_return status;
    self->token = std::move(*response.mutable_token());
    co_return grpc::Status::OK;
}

// One request on the open channel, after a login if one is due. If it fails, the channel is dropped
// and `failure` has the reason.
template <class Request, class Response>
asio::awaitable<std::optional<Response>> EtcdClient::State::try_channel(
    std::shared_ptr<State> self, const Request& request, Rpc<Stub, Request, Response> rpc,
    EtcdFailure& failure) {
    const auto channel = self->channel;
    Response response;
    grpc::Status status;
    // A request whose token is refused is not carried out. The second round has a new one. When the
    // client is destroyed, nothing may be asked any more.
    for (int round = 0; round < 2 && !self->over; ++round) {
        if (self->has_user() && !self->token) {
            status = co_await log_in(self, channel);
            if (!status.ok() || self->over) break;
        }
        status = co_await call<Stub>(self, channel, request, response, rpc);
        if (!self->has_user() || !is_token_refused(status)) break;
        self->token.reset();
    }
    if (status.ok() && !self->over) co_return response;
    failure = failure_of(status, self->limit, self->place.tls, self->access.get());
    // Another call may have opened a new one meanwhile.
    if (self->channel == channel) self->channel.reset();
    co_return std::nullopt;
}

// Asks each endpoint once, at each of its addresses once. The endpoint that answered last comes
// first, on its open connection.
template <class Request, class Response>
EtcdClient::Answer<Response> EtcdClient::State::ask(std::shared_ptr<State> self, Request request,
                                                    Rpc<Stub, Request, Response> rpc) {
    std::string failures;
    EtcdFailure failure;
    bool all_refused = true;
    const auto& endpoints = self->place.endpoints;
    const std::size_t begin = self->first;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        const std::size_t index = (begin + i) % endpoints.size();
        const EtcdEndpoint& endpoint = endpoints[index];
        // The open channel leads to another endpoint.
        if (index != self->first) self->channel.reset();
        self->first = index;
        bool asked = false;
        if (self->channel) {
            if (auto got = co_await try_channel(self, request, rpc, failure)) co_return *got;
            asked = true;
        }
        const auto addresses = co_await resolve(endpoint.host, self->limit);
        if (!addresses && !asked) failure = {addresses.error().sentence()};
        // A connection that has just failed says nothing about the server, which may have been
        // restarted. So the same endpoint is tried again on a new connection.
        for (std::size_t a = 0; addresses && a < addresses->size() && !self->over; ++a) {
            self->channel =
                open_channel((*addresses)[a], endpoint, self->place.tls, self->access.get());
            if (auto got = co_await try_channel(self, request, rpc, failure)) co_return *got;
        }
        if (self->over) co_return self->closed();
        failures += (failures.empty() ? "" : "; ") + to_text(endpoint) + ": " + failure.why;
        all_refused = all_refused && failure.refused;
    }
    if (!all_refused)
        failures +=
            "; check that etcd runs there, or choose another with --ledger=etcd:HOST:PORT,…";
    co_return Error(ErrorCode::unavailable, "etcd " + failures);
}

EtcdClient::EtcdClient(asio::io_context& loop, LedgerPlace place, LedgerAccessPointer access,
                       Duration limit)
    : state_(std::make_shared<State>(loop, std::move(place), std::move(access), limit)) {}

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

std::string EtcdClient::name() const { return to_text(state_->place); }

}  // namespace ddprun::rendezvous
