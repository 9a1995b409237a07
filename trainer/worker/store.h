// Store: the worker's connection to the key-value store of its generation, reduced to the few calls
// that the trainer needs.
//
// All keys have the prefix "ddprun_trainer/<generation>/". torchrun keeps one store for the whole
// job; with the prefix two generations do not meet there. Each object that talks over the store (a
// process group, a snapshot writer, …) has a further prefix of its own, so that a job may have
// several of a kind: another_of_kind(). Threads: one at a time, except another().
// Errors: timed_out, closed, unavailable; the sentence names the key.
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

    // Sets a value. The store does not answer; success means that the request was sent.
    virtual Result<void> set(const std::string& key, const std::string& value) = 0;

    // Waits until the key exists, but at most for `timeout`, and returns its value.
    virtual Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) = 0;

    // Adds to a counter (0 if it does not exist) and returns the new value. The store answers, so
    // it has also received every earlier set() of this connection.
    virtual Result<std::int64_t> add(const std::string& key, std::int64_t delta) = 0;

    // Removes a key that nobody reads any more; it is no error if there is none.
    virtual Result<void> remove(const std::string& key) = 0;

    // A second connection to the same store, for another thread. Its keys have the further prefix
    // `folder`; "" keeps the prefix of this one. Any thread may call it. Errors: those of
    // connect_store().
    virtual Result<std::unique_ptr<Store>> another(const std::string& folder) const = 0;
};

// The number of the next object of this kind, from 1. All ranks make their objects of a kind in the
// same order, so they get the same numbers. The store counts for each rank: the numbers stay right
// if a program connects to the store more than once. Errors: those of add().
Result<std::int64_t> next_of_kind(Store& store, const std::string& kind, Rank rank);

// A second connection for the next object of this kind, with the prefix "<kind>/<number>/". Errors:
// those of add() and connect_store().
Result<std::unique_ptr<Store>> another_of_kind(Store& store, const std::string& kind, Rank rank);

// Connects to the store that the context names. A context without a store (a world of one) gets a
// store in memory. `timeout` limits the connecting.
Result<std::unique_ptr<Store>> connect_store(
    const Context& context, std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace ddprun::trainer
