// The workers' store on this node: the port that is offered for it with each Join, and the store of
// the generation that runs here, if the node has the first rank.
//
// Each generation has a new store with its own port, so old keys and old workers cannot reach it.
//
// Thread: the loop's. The store itself runs on a thread of its own; the callbacks come on the loop.
// Owner: the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "agent/host/master_port.h"
#include "agent/node/owner_calls.h"
#include "base/log.h"
#include "rendezvous/model/node_place.h"
#include "store/server/store_thread.h"

namespace ddprun::agent {

class NodeStore {
  public:
    struct Config {
        bool one_node = false;  // it listens on loopback only
        Duration lease = std::chrono::seconds{10};
        rendezvous::Hello self{};                // to call the other members
        rendezvous::Secrets* secrets = nullptr;  // null: no proof of identity
        std::vector<store::Network> allow;       // may use it besides the members
        store::Limits limits;
    };
    // So many processes have called the store of this generation.
    using OnContact = std::function<void(Generation generation, int processes)>;

    NodeStore(boost::asio::io_context& loop, Config config, OnContact on_contact, Log log);

    // The port that the next generation's store would have. Possible errors: unavailable.
    Result<std::uint16_t> offer(const rendezvous::Offer& offer) {
        return port_.offer(offer.address, offer.addresses);
    }
    // Possible errors: unavailable, with what the process lacks.
    Result<> open(const rendezvous::NodePlace& place);
    void close() {  // calls to other members stay, for the next generation
        past_operations_ = operations();
        store_.reset();
    }
    // No further generation. A leader at its end waits until nobody calls it any more.
    void end() {
        close();
        calls_.end();
    }
    // An event for those that look for it there: "ddprun/event/0", and so on. Nothing if the store
    // is elsewhere.
    void tell(const std::string& line) {
        if (store_) store_->set("/ddprun/event/" + std::to_string(events_++), line);
    }
    // When the last request came to the store of this generation, if it is here. It is asked once.
    std::optional<Time> last_request();

    // Requests that have come to the stores of all generations on this node, and connections that
    // wait there for a key now.
    std::int64_t operations() const {
        return past_operations_ + (store_ ? store_->operations() : 0);
    }
    std::int64_t waiters() const { return store_ ? store_->waiters() : 0; }

  private:
    store::ServerOptions options_for(const rendezvous::NodePlace& place);

    boost::asio::io_context& loop_;
    Config config_;
    OnContact on_contact_;
    Log log_;
    MasterPort port_;
    OwnerCalls calls_;
    std::unique_ptr<store::StoreThread> store_;
    Generation generation_ = kNoGeneration;  // whose store it is
    int events_ = 0;                         // told in it
    std::int64_t past_operations_ = 0;       // of stores that are closed
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
