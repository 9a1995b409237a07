// The calls of the store by name, for both clients: each makes the Task and knows how its answer
// reads.
//
//   Result<std::string> value = client.run(tasks::get("k"), 5s);
//   Result<std::string> value = co_await async_client.run(tasks::get("k"), 5s);
//
// Pure. Keys are those that PyTorch's users see: "k" travels as "/k", so Python and C++ workers
// meet under the same keys.
//
// Which calls are repeated over a new connection when the first was lost: those that only read
// (get, multi_get, wait, check, num_keys, queue_len, list_keys), for to read twice changes nothing.
// No other call is: an add, append, push, pop or barrier would count twice, a delete or compare_set
// would find its own work and report failure, and a set could cover what another has written since.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/store/call.h"

namespace ddprun::store {

template <class T>
struct TypedTask {
    Task task;
    T (*read)(Answer answer);
};

namespace tasks {

using Keys = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

// No answer comes for these four: that they arrived is known only from a later call that answers.
TypedTask<void> set(std::string key, std::string value);
TypedTask<void> append(std::string key, std::string data);  // from 2.1 on
TypedTask<void> multi_set(Pairs pairs);                     // from 2.1 on
TypedTask<void> queue_push(std::string key, std::string data);

// These wait until the keys are there. timed_out leaves the client usable: the wait is taken back.
// queue_pop() waits for an element; multi_get() is from 2.1 on.
TypedTask<std::string> get(std::string key);
TypedTask<Keys> multi_get(Keys keys);
TypedTask<void> wait(Keys keys);
TypedTask<std::string> queue_pop(std::string key);
// Until so many have come to this key (2.12 and later, and ddprun). A key serves one barrier, and
// who gave up waiting stays counted.
TypedTask<void> barrier(std::string key, std::int64_t world_size);

TypedTask<bool> check(Keys keys);
// The value under the key afterwards; a missing key matches an empty expectation, else `expected`
// comes back.
TypedTask<std::string> compare_set(std::string key, std::string expected, std::string desired);
// The counter afterwards. It is kept as decimal text, which get() returns.
TypedTask<std::int64_t> add(std::string key, std::int64_t delta);
TypedTask<bool> delete_key(std::string key);
// All keys of the server, with those that others keep there ("init/", PyTorch's count of workers).
TypedTask<std::int64_t> num_keys();
TypedTask<std::optional<std::string>> try_queue_pop(std::string key);
TypedTask<std::int64_t> queue_len(std::string key);
TypedTask<Keys> list_keys();  // 2.10 and later, and ddprun

}  // namespace tasks
}  // namespace ddprun::store
