// Opens the workers' store with the addresses of the members.
#include "agent/node/node_store.h"

#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <set>
#include <utility>

namespace ddprun::agent {
namespace {

// Every address of every member, and this host.
std::set<boost::asio::ip::address> allowed_addresses(const std::vector<std::string>& members) {
    std::set<boost::asio::ip::address> allowed{boost::asio::ip::address_v4::loopback(),
                                               boost::asio::ip::address_v6::loopback()};
    for (const std::string& text : members) {
        boost::system::error_code error;
        const auto address = boost::asio::ip::make_address(text, error);
        if (!error) allowed.insert(store::plain_address(address));
    }
    return allowed;
}

}  // namespace

NodeStore::NodeStore(boost::asio::io_context& loop, Config config, OnContact on_contact, Warn warn)
    : loop_(loop),
      config_(std::move(config)),
      on_contact_(std::move(on_contact)),
      warn_(std::move(warn)),
      port_(config_.one_node) {}

Result<> NodeStore::open(const rendezvous::NodePlace& place) {
    store::ServerOptions options;
    options.allowed = allowed_addresses(place.addresses);
    options.user = ::geteuid();
    options.also_allowed = config_.allow;
    options.limits = config_.limits;
    // The store calls on its own thread.
    const auto on_loop = [this, alive = std::weak_ptr(alive_)](std::function<void()> what) {
        boost::asio::post(loop_, [alive, what = std::move(what)] {
            if (alive.lock()) what();
        });
    };
    options.log = [this, on_loop](const std::string& sentence) {
        on_loop([this, sentence] { warn_(sentence); });
    };
    options.on_contact = [this, on_loop, generation = place.generation](std::uint64_t processes) {
        on_loop([this, generation, count = static_cast<int>(processes)] {
            on_contact_(generation, count);
        });
    };
    UniqueFd listener = port_.take(place.master_port);
    if (!listener)
        return Error(ErrorCode::unavailable, "this node does not hold port " +
                                                 std::to_string(place.master_port) + " any more");
    auto store = store::StoreThread::start(listener.release(), std::move(options));
    if (!store) return store.error();
    store_ = std::move(*store);
    return {};
}

std::optional<Time> NodeStore::last_request() {
    if (!store_) return std::nullopt;
    store_->stop_timing();
    return store_->last_request();
}

}  // namespace ddprun::agent
