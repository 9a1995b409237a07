// The calls of the store by name. Each function makes the request and knows how
// to read the answer.
//
//   Result<std::string> value = client.run(tasks::get("k"), 5s);
//
// Pure. Keys are those that PyTorch's users see: "k" travels as "/k", so that Python and C++
// workers meet under the same key.
//
// Calls that only read are repeated over a new connection when the old one was lost, since reading
// twice changes nothing: get, multi_get, wait, check, num_keys, queue_len, list_keys. No other call
// is repeated. An add, append, push, pop or barrier would count twice. A delete or compare_set
// would find its own work and report a failure. A set could overwrite what another client has
// written since.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/client/call.h"

namespace ddprun::store {

// A request and the function that turns its answer into the caller's type.
template <class T>
struct TypedTask {
    Task task;
    T (*read)(Answer answer);
};

namespace tasks {

using Keys = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

// The server does not answer these four. Only the answer to a later call proves that they have
// arrived.
TypedTask<void> set(std::string key, std::string value);
TypedTask<void> append(std::string key, std::string data);  // from torch 2.1 on
TypedTask<void> multi_set(Pairs pairs);                     // from torch 2.1 on
TypedTask<void> queue_push(std::string key, std::string data);

// These wait until the keys exist. After timed_out the client is still usable, because the wait is
// taken back. queue_pop() waits for an element. multi_get() needs torch 2.1 or later.
TypedTask<std::string> get(std::string key);
TypedTask<Keys> multi_get(Keys keys);
TypedTask<void> wait(Keys keys);
TypedTask<std::string> queue_pop(std::string key);
// Waits until `world_size` clients have called it with this key (torch 2.12 or later, or ddprun). A
// key serves one barrier. A client that gave up waiting stays counted.
TypedTask<void> barrier(std::string key, std::int64_t world_size);

// Whether all keys exist.
TypedTask<bool> check(Keys keys);
// Returns the value under the key afterwards. A missing key matches an empty `expected`; otherwise
// `expected` itself comes back.
TypedTask<std::string> compare_set(std::string key, std::string expected, std::string desired);
// Returns the counter afterwards. It is stored as decimal text, which get() returns.
TypedTask<std::int64_t> add(std::string key, std::int64_t delta);
// Whether the key existed.
TypedTask<bool> delete_key(std::string key);
// The number of all keys on the server, including those of others ("init/", PyTorch's count of
// workers).
TypedTask<std::int64_t> num_keys();
// Empty if the queue is empty; does not wait.
TypedTask<std::optional<std::string>> try_queue_pop(std::string key);
TypedTask<std::int64_t> queue_len(std::string key);
TypedTask<Keys> list_keys();  // torch 2.10 or later, or ddprun

}  // namespace tasks
}  // namespace ddprun::store
