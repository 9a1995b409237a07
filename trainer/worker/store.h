// The trainer's view of the generation's key-value store: the few calls it needs, under a prefix of
// its own.
//
// Keys live under "ddprun_trainer/<generation>/", so two generations on one store (stock torchrun
// keeps one for the whole job) never meet. Thread: one at a time, but for another(). Errors:
// timed_out, closed, unavailable, with the key in the sentence.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "trainer/worker/context.h"

namespace ddprun::trainer {

class Store {
  public:
    virtual ~Store() = default;

    virtual Result<void> set(const std::string& key, const std::string& value) = 0;

    // Waits until the key is there, no longer than `timeout`.
    virtual Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) = 0;

    // Adds to a counter (0 when it is not there) and returns the new value.
    virtual Result<std::int64_t> add(const std::string& key, std::int64_t delta) = 0;

    // A connection of its own to the same store, for another thread, whose keys lie under `folder`
    // of this one's ("": the same keys). Any thread may call it. Errors: those of connect_store.
    virtual Result<std::unique_ptr<Store>> another(const std::string& folder) const = 0;
};

// Connects to the store that the context names; in a world of one without a store, gives one in
// memory.
Result<std::unique_ptr<Store>> connect_store(
    const Context& context, std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace ddprun::trainer
