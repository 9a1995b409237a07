// One turn of a list after the other.
#include "store/server/listings.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace ddprun::store {

Result<std::optional<Reply>> Listings::turn(ConnectionId connection) {
    if (values_.size() <= kInATurn && !under_way(connection)) {
        Reply reply = sorted(connection);
        if (reply.bytes.size() > most_) return too_long(reply.bytes.size());
        return std::optional(std::move(reply));
    }
    const auto begun = lists_.find(connection);
    if (begun != lists_.end() && begun->second.buckets != values_.buckets()) drop(connection);
    List& list = lists_.try_emplace(connection, List{.buckets = values_.buckets()}).first->second;
    const std::size_t before = list.texts.size();
    for (std::size_t i = 0; i < kInATurn && list.next < list.buckets; ++i)
        values_.each_key(list.next++, [&list](const std::string& key) {
            ++list.count;
            put_text(list.texts, key);
        });
    memory_.used += list.texts.size() - before;
    if (const std::size_t bytes = list.texts.size(); bytes > most_) {
        drop(connection);
        return too_long(bytes);
    }
    if (list.next < list.buckets) return std::optional<Reply>();
    Reply reply = number_reply(connection, list.count);
    reply.bytes += list.texts;
    drop(connection);
    return std::optional(std::move(reply));
}

// The table's own order differs from run to run.
Reply Listings::sorted(ConnectionId connection) const {
    std::vector<std::string_view> keys = values_.keys();
    std::sort(keys.begin(), keys.end());
    Reply reply = number_reply(connection, std::ssize(keys));
    for (const std::string_view key : keys) put_text(reply.bytes, key);
    return reply;
}

void Listings::drop(ConnectionId connection) {
    const auto list = lists_.find(connection);
    if (list == lists_.end()) return;
    memory_.used -= list->second.texts.size();
    lists_.erase(list);
}

Error Listings::too_long(std::size_t bytes) const {
    return over_limit("LIST_KEYS with a reply of " + std::to_string(bytes) + " bytes", most_,
                      "--store-max-queued");
}

}  // namespace ddprun::store
