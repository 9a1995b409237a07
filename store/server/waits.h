// Which connection waits for which keys, and which waits end when a key arrives.
//
// A connection has at most one wait. A new one replaces it, because old clients give up a wait
// silently. Each missing key of a wait counts down once, when it first arrives; it is not checked
// again later. Waits end in the order in which they began. Every operation costs O(log n) for each
// key of a wait, never a scan of all waits: thousands of connections may wait for one key, and
// thousands may close at once. Pure; owned by KeyValues.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/protocol/protocol.h"

namespace ddprun::store {

class Waits {
  public:
    explicit Waits(Memory& memory) : memory_(memory) {}

    // `missing` has the keys that do not exist: at least one, none of them twice.
    void start(ConnectionId connection, std::vector<std::string> missing);

    // The key exists now. Returns the connections whose waits have ended, and forgets these waits.
    std::vector<ConnectionId> arrived(const std::string& key);

    // One element of a queue exists now, so only the first waiting connection counts down. Returns
    // it if its wait has ended.
    std::optional<ConnectionId> arrived_for_one(const std::string& key);

    // The wait is cancelled or replaced, or its connection is closed. No effect without a wait.
    void drop(ConnectionId connection);

    std::size_t size() const { return waits_.size(); }

  private:
    using Ticket = std::uint64_t;  // grows with each registration, so it is the order of waking
    struct Wait {
        std::size_t missing = 0;
        std::uint64_t counted = 0;  // bytes counted into memory_
        // Where this wait stands in by_key_, so that it can be dropped without a search.
        std::vector<std::pair<std::string, Ticket>> registered;
    };

    // One key less is missing; whether the wait has ended.
    bool count_down(ConnectionId connection);

    Memory& memory_;
    std::unordered_map<ConnectionId, Wait> waits_;
    std::unordered_map<std::string, std::map<Ticket, ConnectionId>> by_key_;
    Ticket next_ticket_ = 0;
};

}  // namespace ddprun::store
