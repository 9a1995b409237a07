// Which connection wants a record of each change of a key: WATCH_KEY of torch 1.13 and 2.0.
//
// A watch lasts as long as its connection. Ordinary training does not use watches, so changed()
// then costs one look at an empty table. Pure; owned by KeyValues.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/protocol/protocol.h"

namespace ddprun::store {

class Watches {
  public:
    explicit Watches(Memory& memory) : memory_(memory) {}

    // Adding a watch twice has no further effect.
    void add(ConnectionId connection, const std::string& key);

    // Whether anybody watches this key.
    bool any(const std::string& key) const { return !by_key_.empty() && by_key_.contains(key); }

    // Appends a record for each watcher. A null value means that the key did not exist before, or
    // does not exist any more.
    void changed(const std::string& key, const SharedValue& before, const SharedValue& after,
                 std::vector<Reply>& replies) const;

    // The connection is gone.
    void drop(ConnectionId connection);

  private:
    Memory& memory_;
    std::map<std::string, std::set<ConnectionId>> by_key_;
    std::map<ConnectionId, std::set<std::string>> by_connection_;
};

}  // namespace ddprun::store
