// Opens the workers' store with the addresses of the members.
#include "agent/node/node_store.h"

#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace ddprun::agent {
namespace {

// How long a connection waits for a member's word, as a share of the lease.
constexpr Share kPatience{500};

store::WhoMayEnter::Member member_of(const rendezvous::StoreCaller& caller) {
    store::WhoMayEnter::Member member{caller.peer.node.name, {}};
    for (const std::string& text : caller.addresses) {
        boost::system::error_code error;
        const auto address = boost::asio::ip::make_address(text, error);
        if (!error) member.addresses.push_back(address);
    }
    return member;
}

}  // namespace

NodeStore::NodeStore(boost::asio::io_context& loop, Config config, OnContact on_contact, Log log)
    : loop_(loop),
      config_(std::move(config)),
      on_contact_(std::move(on_contact)),
      log_(std::move(log)),
      port_(config_.one_node),
      calls_(loop, config_.self, config_.secrets, share(config_.lease, kPatience), log_,
             [this](const store::OwnersSaid& said) {
                 if (store_) store_->owners_said(said);
             }) {}

// The store calls on its own thread.
store::ServerOptions NodeStore::options_for(const rendezvous::NodePlace& place) {
    store::ServerOptions options;
    for (const rendezvous::StoreCaller& caller : place.callers)
        options.who.members.push_back(member_of(caller));
    // The first one is this host. Without any member nobody but this host may come in.
    if (options.who.members.empty()) options.who.members.emplace_back();
    auto& here = options.who.members.front().addresses;
    here.emplace_back(boost::asio::ip::address_v4::loopback());
    here.emplace_back(boost::asio::ip::address_v6::loopback());
    options.who.user = ::geteuid();
    options.who.patience = share(config_.lease, kPatience);
    options.who.also_allowed = config_.allow;
    options.limits = config_.limits;
    const auto on_loop = [this, alive = std::weak_ptr(alive_)](std::function<void()> what) {
        boost::asio::post(loop_, [alive, what = std::move(what)] {
            if (alive.lock()) what();
        });
    };
    options.log = [this, on_loop](const std::string& sentence) {
        on_loop([this, sentence] { log_({Note::Level::warn, sentence}); });
    };
    options.on_contact = [this, on_loop, generation = place.generation](std::uint64_t processes) {
        on_loop([this, generation, count = static_cast<int>(processes)] {
            on_contact_(generation, count);
        });
    };
    options.who.ask = [this, on_loop, generation = place.generation](store::OwnersAsked asked) {
        on_loop([this, generation, asked = std::move(asked)] {
            if (store_ && generation == generation_) calls_.ask(asked);
        });
    };
    return options;
}

Result<> NodeStore::open(const rendezvous::NodePlace& place) {
    std::vector<UniqueFd> listening = port_.take(place.master_port);
    if (listening.empty())
        return Error(ErrorCode::unavailable, "this node does not hold port " +
                                                 std::to_string(place.master_port) + " any more");
    log_({Note::Level::debug, "the workers' store listens at port " +
                                  std::to_string(place.master_port) + " of " + port_.where()});
    auto store = store::StoreThread::start(std::move(listening), options_for(place));
    if (!store) return store.error();
    store_ = std::move(*store);
    generation_ = place.generation;
    events_ = 0;
    calls_.begin(place.callers);
    return {};
}

std::optional<Time> NodeStore::last_request() {
    if (!store_) return std::nullopt;
    store_->stop_timing();
    return store_->last_request();
}

}  // namespace ddprun::agent
