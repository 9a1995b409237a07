// LIST_KEYS, in turns: a list of ten million keys takes seconds, in which other connections are
// served. A list has each key that is there all the time. Pure; owned by KeyValues.
//
// A list that fits into one turn is sorted. The turns of a longer one go through the buckets of the
// table, in its order. If the table has grown, the list begins anew; that is seldom, since a table
// doubles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "store/protocol/protocol.h"
#include "store/server/values.h"

namespace ddprun::store {

class Listings {
  public:
    static constexpr std::size_t kInATurn = 4096;  // buckets, with about a key each

    // Both must outlive this object. `most`: bytes of a list.
    Listings(Memory& memory, const Values& values, std::uint64_t most)
        : memory_(memory), values_(values), most_(most) {}

    // The next turn of a connection's list: nothing, or the reply. Possible errors: malformed (the
    // list is too long).
    Result<std::optional<Reply>> turn(ConnectionId connection);
    bool under_way(ConnectionId connection) const { return lists_.contains(connection); }
    void drop(ConnectionId connection);

  private:
    struct List {
        std::size_t buckets = 0;  // of the table
        std::size_t next = 0;     // bucket
        std::int64_t count = 0;   // keys so far
        std::string texts = {};   // as they are sent; counted as memory in use
    };

    Reply sorted(ConnectionId connection) const;
    Error too_long(std::size_t bytes) const;

    Memory& memory_;
    const Values& values_;
    std::uint64_t most_;
    std::unordered_map<ConnectionId, List> lists_;
};

}  // namespace ddprun::store
