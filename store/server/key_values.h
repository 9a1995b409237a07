// The contents of the worker store (keys with values, counters, queues) and what each request does
// to them. In: a request of one connection. Out: replies for any number of connections.
//
// Pure and deterministic: no clock, no sockets; the same requests in the same order give the same
// replies. One thread. The server never ends a wait by time; clients do, with CANCEL_WAIT. Where
// PyTorch's two servers differ from each other, the choice made here is written at the function.
//
// Possible errors of handle(): malformed, when a request makes no sense for what is stored (ADD on
// a text that is no number) or would pass a limit. Nothing has been changed then, and the
// connection must be closed, as PyTorch's servers do. When the store is full (Limits::max_memory,
// max_total_keys), requests that may add to it are refused and all others are served. Replies share
// values with the store and must not outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/protocol/protocol.h"
#include "store/server/listings.h"
#include "store/server/queues.h"
#include "store/server/values.h"
#include "store/server/waits.h"
#include "store/server/watches.h"

namespace ddprun::store {

class KeyValues {
  public:
    explicit KeyValues(Limits limits = {}) : limits_(limits), memory_{limits.max_memory, 0} {}
    KeyValues(const KeyValues&) = delete;
    KeyValues& operator=(const KeyValues&) = delete;

    // Serves a request. Appends to `replies`, in the order in which they must be sent.
    // A long LIST_KEYS takes several turns: as long as is_listing(from), the same request must be
    // handed over again later.
    Result<> handle(ConnectionId from, Request&& request, std::vector<Reply>& replies);
    bool is_listing(ConnectionId from) const { return listings_.under_way(from); }

    // The connection is gone: its wait and its watches are dropped. What it stored stays.
    void closed(ConnectionId connection);

    std::size_t num_keys() const { return values_.size(); }
    std::size_t num_waits() const { return waits_.size(); }
    // All memory of the store. Other owners of bytes that belong to the store (queued output, half
    // requests) count themselves in here.
    Memory& memory() { return memory_; }

  private:
    using Replies = std::vector<Reply>;

    void serve(ConnectionId from, Request& request, Replies& replies);
    Result<> look_for_room(const Request& request) const;
    Result<> count_new_keys(const Request& request) const;
    Result<> multi_get(ConnectionId from, const Request& request, Replies& replies);
    void compare_set(ConnectionId from, Request& request, Replies& replies);
    Result<> add(ConnectionId from, const Request& request, Replies& replies);
    Result<> append(Request& request, Replies& replies);
    void delete_key(ConnectionId from, const std::string& key, Replies& replies);
    void wait(ConnectionId from, std::vector<std::string>& keys, Replies& replies);
    Result<> barrier(ConnectionId from, const Request& request, Replies& replies);
    void queue_push(Request& request, Replies& replies);
    void queue_pop(ConnectionId from, const std::string& key, Replies& replies);
    Result<> list_keys(ConnectionId from, Replies& replies);

    // The counter under a key; 0 if the key does not exist. Possible errors: malformed.
    Result<std::int64_t> counter(const Request& request) const;
    bool present(const std::string& key) const;
    bool all_present(const std::vector<std::string>& keys) const;
    template <typename Step>
    void change(const std::string& key, Replies& replies, const Step& step);
    // put() only stores. store() also wakes the connections that wait for the key.
    void put(const std::string& key, std::string&& value, Replies& replies);
    void store(const std::string& key, std::string&& value, Replies& replies);
    void wake(const std::string& key, Replies& replies);

    Limits limits_;
    Memory memory_;  // declared first: it must outlive what counts itself into it
    Values values_{memory_};
    Queues queues_{memory_};  // a name space of its own
    Waits waits_{memory_};
    Watches watches_{memory_};
    Listings listings_{memory_, values_, limits_.max_queued};
};

}  // namespace ddprun::store
