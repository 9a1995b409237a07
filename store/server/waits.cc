// Two tables that point to each other: waits by connection, and waiting connections by key.
#include "store/server/waits.h"

namespace ddprun::store {

void Waits::start(ConnectionId connection, std::vector<std::string> missing) {
    drop(connection);
    // The memory is counted before the keys are moved away.
    Wait& wait = waits_[connection];
    wait.missing = missing.size();
    for (const std::string& key : missing) wait.counted += cost_of_key(key);
    memory_.used += wait.counted;
    for (std::string& key : missing) {
        by_key_[key].emplace(next_ticket_, connection);
        wait.registered.emplace_back(std::move(key), next_ticket_++);
    }
}

bool Waits::count_down(ConnectionId connection) {
    const auto wait = waits_.find(connection);
    if (--wait->second.missing > 0) return false;
    memory_.used -= wait->second.counted;
    waits_.erase(wait);  // none of its registrations is left in by_key_
    return true;
}

std::vector<ConnectionId> Waits::arrived(const std::string& key) {
    std::vector<ConnectionId> free;
    // Nearly every SET comes here, and usually nobody waits.
    if (by_key_.empty()) return free;
    // Taken out as a whole: all who wait for the key have it now.
    const auto registered = by_key_.extract(key);
    if (registered.empty()) return free;
    for (const auto& [ticket, connection] : registered.mapped()) {
        if (count_down(connection)) free.push_back(connection);
    }
    return free;
}

std::optional<ConnectionId> Waits::arrived_for_one(const std::string& key) {
    const auto registered = by_key_.find(key);
    if (registered == by_key_.end()) return std::nullopt;
    const auto first = registered->second.begin();
    const ConnectionId connection = first->second;
    registered->second.erase(first);
    if (registered->second.empty()) by_key_.erase(registered);
    if (!count_down(connection)) return std::nullopt;
    return connection;
}

void Waits::drop(ConnectionId connection) {
    const auto wait = waits_.extract(connection);
    if (wait.empty()) return;
    memory_.used -= wait.mapped().counted;
    for (const auto& [key, ticket] : wait.mapped().registered) {
        const auto registered = by_key_.find(key);
        // The key has arrived already, which removed the registration.
        if (registered == by_key_.end()) continue;
        registered->second.erase(ticket);
        if (registered->second.empty()) by_key_.erase(registered);
    }
}

}  // namespace ddprun::store
