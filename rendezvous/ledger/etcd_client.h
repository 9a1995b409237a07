// Asks etcd: two kinds of requests over gRPC, several endpoints in turn, a deadline for each
// attempt, and on failure one sentence that names every endpoint with its reason. etcd_series.h
// gives the keys their meaning.
//
// The endpoint that answered last is asked first. After a failure its connection is dropped, so
// that a restarted server is found at once, without gRPC's growing pauses. Names are looked up by
// resolve.h and gRPC only sees addresses: its own look-up needs NSS, which a static binary does not
// have. Proxies in the environment are ignored, because they are meant for the web.
//
// gRPC's library starts with the first EtcdClient and stops with the last one. A user logs in when
// the first request needs it, and again when etcd does not accept the token any more: it forgets
// tokens that have not been used for five minutes, and all of them when it is started again. An
// etcd without users says so once.
//
// Thread: the loop's. An EtcdClient may be destroyed at any time; pending requests then end with
// `closed`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "rendezvous/ledger_format/ledger_access.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::rendezvous {

class EtcdClient {
  public:
    struct KeyValue {
        std::string key, value;
    };
    template <class T>
    using Answer = boost::asio::awaitable<Result<T>>;

    // `place` is one in etcd. `access` may be null: neither user nor certificates. `limit` bounds
    // one attempt at one endpoint.
    EtcdClient(boost::asio::io_context& loop, LedgerPlace place, LedgerAccessPointer access,
               Duration limit = std::chrono::seconds{2});
    ~EtcdClient();
    EtcdClient(const EtcdClient&) = delete;
    EtcdClient& operator=(const EtcdClient&) = delete;

    // The keys from `from` (included) to `to` (excluded), in order. The read is linearizable: it
    // shows everything that anybody has written before. Possible errors: unavailable (no endpoint
    // answered, or etcd refused; the sentence has each endpoint's reason and what to do).
    Answer<std::vector<KeyValue>> range(std::string from, std::string to);

    // Creates the key unless it exists, and returns the value that it has now. If an answer is
    // lost, the next attempt finds what the first one has written. Possible errors: as above, and
    // then nobody knows whether it was written; malformed (the answer is no transaction's).
    Answer<std::string> create(std::string key, std::string value);

    // "etcd:a:2379,b:2379", "etcds:a:2379"
    std::string name() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
