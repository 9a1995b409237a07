// A client of the worker store, ours or PyTorch's own (torch 2.5 and later, whose greeting and PING
// it uses).
//
// Blocking, with a time limit for every call. One thread at a time per client; several clients may
// be used side by side. Keys are those that PyTorch users see: "k" is stored as "/k", so Python and
// C++ workers meet under the same keys. It never reconnects, for a store that was lost has lost
// what the worker knew of it: after a call that failed with closed, malformed or (other than waits)
// timed_out, each further call says so and fails with closed. Errors of all calls, with a sentence
// that names the store: timed_out, closed, malformed (the answer makes no sense, or what answers is
// no store); connect() also unavailable, when nobody was there until the time was up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/error.h"
#include "rendezvous/store/client_socket.h"
#include "rendezvous/store/protocol.h"

namespace ddprun::store {

class StoreClient {
  public:
    using Timeout = std::chrono::milliseconds;

    // Tries until the store is there or the time is up. `host` is a name or an address.
    static Result<StoreClient> connect(const std::string& host, std::uint16_t port,
                                       Timeout timeout);

    // No answer comes for these four: that they arrived is known only from a later call that
    // answers.
    Result<> set(const std::string& key, const std::string& value, Timeout timeout);
    Result<> append(const std::string& key, const std::string& data, Timeout timeout);
    Result<> multi_set(const std::vector<std::pair<std::string, std::string>>& pairs,
                       Timeout timeout);
    Result<> queue_push(const std::string& key, const std::string& data, Timeout timeout);

    // These wait until the keys are there. timed_out leaves the client usable: the wait is taken
    // back.
    Result<std::string> get(const std::string& key, Timeout timeout);
    Result<std::vector<std::string>> multi_get(const std::vector<std::string>& keys,
                                               Timeout timeout);
    Result<> wait(const std::vector<std::string>& keys, Timeout timeout);

    Result<bool> check(const std::vector<std::string>& keys, Timeout timeout);
    // The value under the key afterwards; a missing key matches an empty expectation, else
    // `expected` comes back.
    Result<std::string> compare_set(const std::string& key, const std::string& expected,
                                    const std::string& desired, Timeout timeout);
    // The counter afterwards. It is kept as decimal text, which get() returns.
    Result<std::int64_t> add(const std::string& key, std::int64_t delta, Timeout timeout);
    Result<bool> delete_key(const std::string& key, Timeout timeout);
    Result<std::int64_t> num_keys(Timeout timeout);
    // Does not wait; nothing when the queue is empty. Servers before torch 2.8 close the
    // connection.
    Result<std::optional<std::string>> queue_pop(const std::string& key, Timeout timeout);

    const std::string& address() const { return address_; }  // host:port, as in the sentences

  private:
    StoreClient(ClientSocket socket, std::string address)
        : socket_(std::move(socket)), address_(std::move(address)) {}

    static Result<StoreClient> try_connect(const std::string& host, std::uint16_t port,
                                           Deadline deadline);
    Result<> greet(Deadline deadline);
    Result<> send(const Request& request, Deadline deadline);
    Result<> receive(char* into, std::size_t count, Deadline deadline);
    Result<std::uint64_t> receive_number(std::size_t bytes, Deadline deadline);
    Result<std::string> receive_text(Deadline deadline);
    Result<> wait_until(const std::vector<std::string>& keys, Timeout timeout, Deadline deadline);
    Result<> take_back_wait(const std::vector<std::string>& keys, Timeout timeout);
    Error fail(ErrorCode code, const std::string& what);
    Error said(ErrorCode code, const std::string& what) const;

    ClientSocket socket_;
    std::string address_;
    std::string broken_;  // why no call can succeed any more; empty: usable
};

}  // namespace ddprun::store
