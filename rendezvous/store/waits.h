// Which connection waits for which keys, and who is free when a key arrives.
//
// A connection has at most one wait, a new one replaces it: old clients give up a wait without
// saying so. Each missing key of a wait counts down once, when it first arrives, and is not looked
// at again. Who waited first is named first. Pure; owned by KeyValues. All costs are per key of a
// wait (log n), never a scan of all that wait: thousands wait for one key and thousands close at
// once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rendezvous/store/protocol.h"

namespace ddprun::store {

class Waits {
  public:
    explicit Waits(Memory& memory) : memory_(memory) {}

    // `missing` are the keys that are not there, at least one, none of them twice.
    void start(ConnectionId connection, std::vector<std::string> missing);

    // The key is there. Returns the connections that wait for nothing more, and forgets their
    // waits.
    std::vector<ConnectionId> arrived(const std::string& key);

    // The key is there for one of those who wait (an element of a queue). Returns it if it waits
    // for nothing more.
    std::optional<ConnectionId> arrived_for_one(const std::string& key);

    // Cancelled, replaced or closed; harmless when there is no wait.
    void drop(ConnectionId connection);

    std::size_t size() const { return waits_.size(); }

  private:
    using Ticket = std::uint64_t;  // grows with each registration: the order of waking
    struct Wait {
        std::size_t missing = 0;
        std::uint64_t counted = 0;  // into memory_
        std::vector<std::pair<std::string, Ticket>> registered;
    };

    bool count_down(ConnectionId connection);

    Memory& memory_;
    std::unordered_map<ConnectionId, Wait> waits_;
    std::unordered_map<std::string, std::map<Ticket, ConnectionId>> by_key_;
    Ticket next_ticket_ = 0;
};

}  // namespace ddprun::store
