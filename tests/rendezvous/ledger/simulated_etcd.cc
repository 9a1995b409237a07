// The services of a simulated etcd, and its store (simulated_etcd.h).
#include "tests/rendezvous/ledger/simulated_etcd.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "proto/etcd.grpc.pb.h"

namespace ddprun::rendezvous {

using namespace etcdserverpb;

class SimulatedEtcd::Cluster {
  public:
    Cluster();

    grpc::Status range(grpc::ServerContext& call, const RangeRequest& request,
                       RangeResponse& response);
    grpc::Status transact(grpc::ServerContext& call, const TxnRequest& request,
                          TxnResponse& response);
    grpc::Status log_in(const AuthenticateRequest& request, AuthenticateResponse& response);
    void fail(std::uint64_t seed, double share, bool silent);

    std::vector<EtcdEndpoint> endpoints;
    std::mutex lock;
    bool users = false;
    Counts counts;

  private:
    enum class Fault { none, refused, lost, silent, late };
    Fault draw();
    bool chance(double share) { return std::uniform_real_distribution()(random_) < share; }
    grpc::Status lets_in(const grpc::ServerContext& call);
    void read(const RangeRequest& request, RangeResponse& response) const;
    void carry_out(const TxnRequest& request, TxnResponse& response);
    void carry_out_late(double share);

    struct Member;
    std::vector<std::shared_ptr<Member>> members_;
    std::mt19937_64 random_;
    double share_ = 0;
    bool silent_ = false;
    std::map<std::string, std::string> keys_;
    std::set<std::string> tokens_;
    std::vector<TxnRequest> late_;  // those nobody waits for any more
};

namespace {

const grpc::Status kNoLeader(grpc::StatusCode::UNAVAILABLE, "etcdserver: no leader");
const grpc::Status kLost(grpc::StatusCode::UNAVAILABLE, "etcdserver: leader changed");

// Until the client has given up, which is its own deadline's doing.
grpc::Status no_answer(grpc::ServerContext& call) {
    for (int looks = 0; !call.IsCancelled() && looks < 10000; ++looks)
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    return grpc::Status::CANCELLED;
}

}  // namespace

// The services of one member, and the server that they belong to.
struct SimulatedEtcd::Cluster::Member {
    struct Keys final : KV::Service {
        grpc::Status Range(grpc::ServerContext* call, const RangeRequest* request,
                           RangeResponse* response) override {
            return cluster->range(*call, *request, *response);
        }
        grpc::Status Txn(grpc::ServerContext* call, const TxnRequest* request,
                         TxnResponse* response) override {
            return cluster->transact(*call, *request, *response);
        }
        Cluster* cluster;
    };
    struct Users final : Auth::Service {
        grpc::Status Authenticate(grpc::ServerContext*, const AuthenticateRequest* request,
                                  AuthenticateResponse* response) override {
            return cluster->log_in(*request, *response);
        }
        Cluster* cluster;
    };
    Keys keys;
    Users users;
    std::unique_ptr<grpc::Server> server;  // goes first
};

SimulatedEtcd::Cluster::Cluster() {
    for (int i = 0; i < 3; ++i) {
        auto member = std::make_shared<Member>();
        member->keys.cluster = member->users.cluster = this;
        int port = 0;
        grpc::ServerBuilder builder;
        builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
        builder.RegisterService(&member->keys);
        builder.RegisterService(&member->users);
        member->server = builder.BuildAndStart();
        endpoints.push_back({"127.0.0.1", static_cast<std::uint16_t>(port)});
        members_.push_back(std::move(member));
    }
}

void SimulatedEtcd::Cluster::fail(std::uint64_t seed, double share, bool silent) {
    const std::lock_guard held(lock);
    random_.seed(seed);
    share_ = share;
    silent_ = silent;
    if (share == 0) carry_out_late(1);
}

SimulatedEtcd::Cluster::Fault SimulatedEtcd::Cluster::draw() {
    if (!chance(share_)) return Fault::none;
    if (silent_ && chance(0.25)) {
        const bool late = chance(0.5);
        ++(late ? counts.late : counts.silent);
        return late ? Fault::late : Fault::silent;
    }
    const bool lost = chance(0.5);
    ++(lost ? counts.lost : counts.refused);
    return lost ? Fault::lost : Fault::refused;
}

grpc::Status SimulatedEtcd::Cluster::lets_in(const grpc::ServerContext& call) {
    if (!users) return grpc::Status::OK;
    if (chance(share_)) {
        ++counts.forgotten;
        tokens_.clear();
    }
    const auto token = call.client_metadata().find("token");
    if (token == call.client_metadata().end())
        return {grpc::StatusCode::INVALID_ARGUMENT, "etcdserver: user name is empty"};
    if (tokens_.contains({token->second.data(), token->second.size()})) return grpc::Status::OK;
    return {grpc::StatusCode::UNAUTHENTICATED, "etcdserver: invalid auth token"};
}

grpc::Status SimulatedEtcd::Cluster::range(grpc::ServerContext& call, const RangeRequest& request,
                                           RangeResponse& response) {
    {
        const std::lock_guard held(lock);
        carry_out_late(0.1);
        if (const grpc::Status in = lets_in(call); !in.ok()) return in;
        const Fault fault = draw();
        if (fault == Fault::refused) return kNoLeader;
        read(request, response);
        if (fault == Fault::lost) return kLost;
        if (fault == Fault::none) return grpc::Status::OK;
    }
    return no_answer(call);
}

grpc::Status SimulatedEtcd::Cluster::transact(grpc::ServerContext& call, const TxnRequest& request,
                                              TxnResponse& response) {
    {
        const std::lock_guard held(lock);
        carry_out_late(0.1);
        if (const grpc::Status in = lets_in(call); !in.ok()) return in;
        const Fault fault = draw();
        if (fault == Fault::refused) return kNoLeader;
        if (fault == Fault::late) late_.push_back(request);
        if (fault == Fault::lost || fault == Fault::none) carry_out(request, response);
        if (fault == Fault::lost) return kLost;
        if (fault == Fault::none) return grpc::Status::OK;
    }
    return no_answer(call);
}

grpc::Status SimulatedEtcd::Cluster::log_in(const AuthenticateRequest& request,
                                            AuthenticateResponse& response) {
    const std::lock_guard held(lock);
    ++counts.logins;
    if (!users)
        return {grpc::StatusCode::FAILED_PRECONDITION, "etcdserver: authentication is not enabled"};
    if (request.name() != "job" || request.password() != "word")
        return {grpc::StatusCode::INVALID_ARGUMENT,
                "etcdserver: authentication failed, invalid user ID or password"};
    if (chance(share_)) return kNoLeader;
    response.set_token("token." + std::to_string(random_()));
    tokens_.insert(response.token());
    return grpc::Status::OK;
}

void SimulatedEtcd::Cluster::read(const RangeRequest& request, RangeResponse& response) const {
    const std::string end =
        request.range_end().empty() ? request.key() + '\0' : request.range_end();
    for (auto at = keys_.lower_bound(request.key()); at != keys_.end() && at->first < end; ++at) {
        KeyValue& pair = *response.add_kvs();
        pair.set_key(at->first);
        pair.set_version(1);
        pair.set_value(at->second);
    }
}

// The one form that a ledger sends: if a key does not exist, put it, else read it.
void SimulatedEtcd::Cluster::carry_out(const TxnRequest& request, TxnResponse& response) {
    const Compare& condition = request.compare(0);
    const bool absent = !keys_.contains(condition.key());
    response.set_succeeded(absent == (condition.version() == 0));
    for (const RequestOp& each : response.succeeded() ? request.success() : request.failure()) {
        ResponseOp& done = *response.add_responses();
        if (each.has_request_range()) {
            read(each.request_range(), *done.mutable_response_range());
        } else {
            keys_[each.request_put().key()] = each.request_put().value();
            done.mutable_response_put();
        }
    }
}

void SimulatedEtcd::Cluster::carry_out_late(double share) {
    std::erase_if(late_, [&](const TxnRequest& request) {
        if (!chance(share)) return false;
        TxnResponse unheard;
        carry_out(request, unheard);
        return true;
    });
}

SimulatedEtcd::SimulatedEtcd() : cluster_(std::make_unique<Cluster>()) {}
SimulatedEtcd::~SimulatedEtcd() = default;

LedgerPlace SimulatedEtcd::place(const std::string& path) const {
    return {LedgerPlace::Kind::etcd, path, cluster_->endpoints};
}

void SimulatedEtcd::fail(std::uint64_t seed, double share, bool silent) {
    cluster_->fail(seed, share, silent);
}

void SimulatedEtcd::has_users(bool has) {
    const std::lock_guard held(cluster_->lock);
    cluster_->users = has;
}

SimulatedEtcd::Counts SimulatedEtcd::counts() const {
    const std::lock_guard held(cluster_->lock);
    return cluster_->counts;
}

}  // namespace ddprun::rendezvous
