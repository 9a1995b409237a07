// Exchanges what the nodes bring to a barrier of PMI, through the workers' store of the generation:
// each node writes its text under a key of the round and its own rank, and then waits for those of
// all. A key is removed when its round is over for all: they have come to the next one then.
//
// A store that is gone is asked again and again: the leader ends the generation, and names the
// cause better.
//
// Thread: the loop's; the store's client has one of its own, since its calls block. Owner: the PMI
// server. When it is destroyed, nothing more is called.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/model/node_place.h"

namespace ddprun::agent::pmi {

class Rounds {
  public:
    using Say = std::function<void(const std::string& line)>;
    // What each node has brought, in the order of the nodes' ranks.
    using OnOver = std::function<void(const std::vector<std::string>& brought)>;

    // With one node no store is used.
    Rounds(boost::asio::io_context& loop, const rendezvous::NodePlace& place, OnOver on_over,
           Say say);
    ~Rounds();

    // Not before the last one is over.
    void begin(std::string bring);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::agent::pmi
