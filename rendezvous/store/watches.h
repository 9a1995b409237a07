// Which connection wants a record of each change of which key: WATCH_KEY of torch 1.13 and 2.0.
//
// A watch lasts as long as its connection. Nothing in ordinary training uses it, so `changed` costs
// one look at an empty table. Pure; owned by KeyValues.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/store/protocol.h"

namespace ddprun::store {

class Watches {
  public:
    explicit Watches(Memory& memory) : memory_(memory) {}

    void add(ConnectionId connection, const std::string& key);

    bool any(const std::string& key) const { return !by_key_.empty() && by_key_.contains(key); }

    // Appends the record for each watcher; null stands for "was not there" and "is not there any
    // more".
    void changed(const std::string& key, const SharedValue& before, const SharedValue& after,
                 std::vector<Reply>& replies) const;

    void drop(ConnectionId connection);

  private:
    Memory& memory_;
    std::map<std::string, std::set<ConnectionId>> by_key_;
    std::map<ConnectionId, std::set<std::string>> by_connection_;
};

}  // namespace ddprun::store
