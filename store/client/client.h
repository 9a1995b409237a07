// A blocking client of the worker store, ddprun's or PyTorch's own, of any version from torch 1.13
// on. When it connects it finds out which dialect the server speaks (greeting.h). Every call has a
// time limit.
//
// Thread: one at a time for a client; several clients may exist side by side.
//
// tasks.h describes each call, and which calls are repeated over a new connection when the old one
// was lost. A repetition happens at most once a call, within its time limit, and never if something
// that was written before may have been lost unnoticed. Any other call on a lost connection fails
// and says since when and why.
//
// Possible errors, each with a sentence that names the store, the call, its keys and the time
// limit:
//
// - timed_out, closed
// - malformed: the answer makes no sense, or what answers is no store
// - refused: the server is too old for the operation
// - unavailable (connect() only): nobody answered until the time was up
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/client/client_socket.h"
#include "store/client/client_state.h"
#include "store/client/tasks.h"

namespace ddprun::store {

class StoreClient {
  public:
    using Timeout = store::Timeout;
    using Keys = tasks::Keys;

    // Retries until the store answers or the time is up. `host` is a name or an address. If the
    // caller knows the server's dialect, nothing is tried out.
    static Result<StoreClient> connect(const std::string& host, std::uint16_t port, Timeout timeout,
                                       Dialect dialect = Dialect::unknown);

    template <class T>
    Result<T> run(TypedTask<T> typed, Timeout timeout) {
        Result<Answer> answer = make_call(std::move(typed.task), timeout);
        if (!answer) return answer.error();
        if constexpr (std::is_void_v<T>) {
            return {};
        } else {
            return typed.read(std::move(*answer));
        }
    }

    // The same calls by name; tasks.h describes them.
    Result<> set(std::string key, std::string value, Timeout timeout) {
        return run(tasks::set(std::move(key), std::move(value)), timeout);
    }
    Result<> append(std::string key, std::string data, Timeout timeout) {
        return run(tasks::append(std::move(key), std::move(data)), timeout);
    }
    Result<> multi_set(tasks::Pairs pairs, Timeout timeout) {
        return run(tasks::multi_set(std::move(pairs)), timeout);
    }
    Result<> queue_push(std::string key, std::string data, Timeout timeout) {
        return run(tasks::queue_push(std::move(key), std::move(data)), timeout);
    }
    Result<std::string> get(std::string key, Timeout timeout) {
        return run(tasks::get(std::move(key)), timeout);
    }
    Result<Keys> multi_get(Keys keys, Timeout timeout) {
        return run(tasks::multi_get(std::move(keys)), timeout);
    }
    Result<> wait(Keys keys, Timeout timeout) { return run(tasks::wait(std::move(keys)), timeout); }
    Result<std::string> queue_pop(std::string key, Timeout timeout) {
        return run(tasks::queue_pop(std::move(key)), timeout);
    }
    Result<> barrier(std::string key, std::int64_t world_size, Timeout timeout) {
        return run(tasks::barrier(std::move(key), world_size), timeout);
    }
    Result<bool> check(Keys keys, Timeout timeout) {
        return run(tasks::check(std::move(keys)), timeout);
    }
    Result<std::string> compare_set(std::string key, std::string expected, std::string desired,
                                    Timeout timeout) {
        return run(tasks::compare_set(std::move(key), std::move(expected), std::move(desired)),
                   timeout);
    }
    Result<std::int64_t> add(std::string key, std::int64_t delta, Timeout timeout) {
        return run(tasks::add(std::move(key), delta), timeout);
    }
    Result<bool> delete_key(std::string key, Timeout timeout) {
        return run(tasks::delete_key(std::move(key)), timeout);
    }
    Result<std::int64_t> num_keys(Timeout timeout) { return run(tasks::num_keys(), timeout); }
    Result<std::optional<std::string>> try_queue_pop(std::string key, Timeout timeout) {
        return run(tasks::try_queue_pop(std::move(key)), timeout);
    }
    Result<std::int64_t> queue_len(std::string key, Timeout timeout) {
        return run(tasks::queue_len(std::move(key)), timeout);
    }
    Result<Keys> list_keys(Timeout timeout) { return run(tasks::list_keys(), timeout); }

    const std::string& address() const { return state_.address(); }  // host:port
    const Peer& peer() const { return state_.peer(); }

  private:
    StoreClient(std::string host, std::uint16_t port, Dialect dialect)
        : host_(std::move(host)), port_(port), state_(host_, port, dialect) {}

    Result<Answer> make_call(Task task, Timeout timeout);
    Result<Answer> call_once(Task task, Timeout timeout, Deadline begun);
    Result<> reconnect(Deadline deadline);
    // What one connection contributes to the greeting.
    Result<Greeting::Verdict> greet(Greeting& greeting, Deadline deadline);
    Result<> connect_once(Greeting& greeting, Deadline deadline);

    std::string host_;
    std::uint16_t port_;
    ClientState state_;
    std::optional<ClientSocket> socket_;  // empty: not connected
};

}  // namespace ddprun::store
