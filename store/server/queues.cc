// When a queue begins and ends, and what it counts.
#include "store/server/queues.h"

#include <utility>

#include "store/server/counted_text.h"

namespace ddprun::store {
namespace {

// An estimate for a queue; std::deque allocates its first block early.
constexpr std::uint64_t kQueueItself = 1024;

}  // namespace

void Queues::push(const std::string& key, std::string&& element) {
    const auto [queue, is_new] = queues_.try_emplace(key);
    if (is_new) memory_.used += key.size() + kQueueItself;
    queue->second.push_back(counted(std::move(element), memory_));
}

SharedValue Queues::pop(const std::string& key) {
    const auto queue = queues_.find(key);
    if (queue == queues_.end()) return nullptr;
    SharedValue first = std::move(queue->second.front());
    queue->second.pop_front();
    if (queue->second.empty()) {
        memory_.used -= key.size() + kQueueItself;
        queues_.erase(queue);
    }
    return first;
}

std::size_t Queues::length(const std::string& key) const {
    const auto queue = queues_.find(key);
    return queue == queues_.end() ? 0 : queue->second.size();
}

}  // namespace ddprun::store
