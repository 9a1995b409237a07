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
#include <string>
#include <vector>

#include "agent/host/master_port.h"
#include "rendezvous/model/node_place.h"
#include "rendezvous/store/store_thread.h"

namespace ddprun::agent {

class NodeStore {
  public:
    struct Config {
        bool one_node = false;              // it listens on loopback only
        std::vector<store::Network> allow;  // may use it besides the members
        store::Limits limits;
    };
    // So many processes have called the store of this generation.
    using OnContact = std::function<void(Generation generation, int processes)>;
    using Warn = std::function<void(const std::string& sentence)>;

    NodeStore(boost::asio::io_context& loop, Config config, OnContact on_contact, Warn warn);

    // The port that the next generation's store would have. Possible errors: unavailable.
    Result<std::uint16_t> offer() { return port_.offer(); }
    // Possible errors: unavailable, with what the process lacks.
    Result<> open(const rendezvous::NodePlace& place);
    void close() { store_.reset(); }
    // When the last request came to the store of this generation, if it is here. It is asked once.
    std::optional<Time> last_request();

  private:
    boost::asio::io_context& loop_;
    Config config_;
    OnContact on_contact_;
    Warn warn_;
    MasterPort port_;
    std::unique_ptr<store::StoreThread> store_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
