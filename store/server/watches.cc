// Watches in two tables: watchers by key, and keys by connection.
#include "store/server/watches.h"

namespace ddprun::store {
namespace {

// The first byte of a record, as torch 1.13 numbers it.
enum class Change : std::uint8_t { updated = 0, created = 1, deleted = 2 };

}  // namespace

void Watches::add(ConnectionId connection, const std::string& key) {
    by_key_[key].insert(connection);
    if (by_connection_[connection].insert(key).second) memory_.used += cost_of_key(key);
}

// A record is the kind of change and the key, then the old and the new value. The values are
// shared, however many connections watch the key.
void Watches::changed(const std::string& key, const SharedValue& before, const SharedValue& after,
                      std::vector<Reply>& replies) const {
    if (by_key_.empty()) return;
    const auto watchers = by_key_.find(key);
    if (watchers == by_key_.end()) return;
    const Change change = !before ? Change::created : !after ? Change::deleted : Change::updated;
    std::string record(1, static_cast<char>(change));
    put_text(record, key);
    for (const ConnectionId connection : watchers->second) {
        replies.push_back({connection, record, nullptr});
        replies.push_back(value_reply(connection, before));
        replies.push_back(value_reply(connection, after));
    }
}

void Watches::drop(ConnectionId connection) {
    const auto keys = by_connection_.extract(connection);
    if (keys.empty()) return;
    for (const std::string& key : keys.mapped()) {
        memory_.used -= cost_of_key(key);
        const auto watchers = by_key_.find(key);
        watchers->second.erase(connection);
        if (watchers->second.empty()) by_key_.erase(watchers);
    }
}

}  // namespace ddprun::store
