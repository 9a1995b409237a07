// Waits in slices, with a question between them.
#include "trainer/group/guarded_store.h"

#include <algorithm>

namespace ddprun::trainer {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(100);

}  // namespace

GuardedStore::GuardedStore(std::unique_ptr<Store> store, std::function<bool()> failed)
    : store_(std::move(store)), failed_(std::move(failed)) {}

Result<void> GuardedStore::set(const std::string& key, const std::string& value) {
    return store_->set(key, value);
}

Result<std::string> GuardedStore::get(const std::string& key, std::chrono::milliseconds timeout) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + timeout;
    while (failed_) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left <= kSlice) return store_->get(key, std::max(left, std::chrono::milliseconds(1)));
        auto value = store_->get(key, kSlice);
        if (value || value.error().code() != ErrorCode::timed_out) return value;
        if (failed_()) return Error(ErrorCode::closed, "another rank has failed");
    }
    return store_->get(key, timeout);
}

Result<std::int64_t> GuardedStore::add(const std::string& key, std::int64_t delta) {
    return store_->add(key, delta);
}

Result<void> GuardedStore::remove(const std::string& key) { return store_->remove(key); }

Result<std::unique_ptr<Store>> GuardedStore::another(const std::string& folder) const {
    return store_->another(folder);
}

}  // namespace ddprun::trainer
