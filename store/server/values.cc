// When a value may change in place, and what a key counts.
#include "store/server/values.h"

#include <utility>

#include "store/server/counted_text.h"

namespace ddprun::store {

SharedValue Values::find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : shared(found->second);
}

std::vector<std::string_view> Values::keys() const {
    std::vector<std::string_view> keys;
    keys.reserve(values_.size());
    for (const auto& [key, value] : values_) keys.push_back(key);
    return keys;
}

void Values::put(const std::string& key, std::string&& value) {
    const auto [entry, is_new] = values_.try_emplace(key);
    if (is_new) memory_.used += key.size() + kEntryItself;
    if (!is_new && entry->second.use_count() == 1) {
        entry->second->assign(std::move(value));
    } else {
        entry->second = std::make_shared<CountedText>(std::move(value), memory_);
    }
}

void Values::append(const std::string& key, const std::string& more) {
    std::shared_ptr<CountedText>& value = values_.at(key);
    if (value.use_count() == 1) {
        value->append(more);
    } else {
        value = std::make_shared<CountedText>(value->text() + more, memory_);
    }
}

void Values::remove(const std::string& key) {
    if (values_.erase(key) > 0) memory_.used -= key.size() + kEntryItself;
}

}  // namespace ddprun::store
