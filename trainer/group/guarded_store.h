// GuardedStore: a store whose waits also end when something else has failed, e.g. the group that is
// being split.
//
// Until release() it asks while it waits. Errors: those of the store; closed, when the question was
// answered with yes. Thread: one at a time.
#pragma once

#include <functional>
#include <memory>

#include "trainer/worker/store.h"

namespace ddprun::trainer {

class GuardedStore final : public Store {
  public:
    // `failed` is asked a few times a second.
    GuardedStore(std::unique_ptr<Store> store, std::function<bool()> failed);

    // From now on it is as the store that it was made of.
    void release() { failed_ = nullptr; }

    Result<void> set(const std::string& key, const std::string& value) override;
    Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override;
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Result<void> remove(const std::string& key) override;
    Result<std::unique_ptr<Store>> another(const std::string& folder) const override;

  private:
    const std::unique_ptr<Store> store_;
    std::function<bool()> failed_;
};

}  // namespace ddprun::trainer
