// How etcd is asked: two requests over gRPC, several endpoints in turn, a deadline for each try,
// and one sentence that names every endpoint that failed and why. What the keys mean is
// ledger_etcd's business.
//
// An endpoint that answered is asked first the next time; of one that failed the connection is
// dropped, so that a server that was restarted is met anew at once, without gRPC's growing pauses.
// Names are looked up by resolve.h, and gRPC sees numbers only: its own look-up would need NSS,
// which a static binary has not. Proxies of the environment are not used: they are for the web.
//
// gRPC's library starts with the first EtcdClient and ends with the last one. No TLS, no user: who
// reaches the port may read and write, as with any etcd without them.
//
// Thread: the loop's. An EtcdClient may be destroyed at any time: what it was asked then comes back
// as closed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::rendezvous {

class EtcdClient {
  public:
    struct KeyValue {
        std::string key, value;
    };
    template <class T>
    using Answer = boost::asio::awaitable<Result<T>>;

    // `limit` is that of one try at one endpoint.
    EtcdClient(boost::asio::io_context& loop, std::vector<EtcdEndpoint> endpoints,
               Duration limit = std::chrono::seconds{2});
    ~EtcdClient();
    EtcdClient(const EtcdClient&) = delete;
    EtcdClient& operator=(const EtcdClient&) = delete;

    // The keys from `from` to below `to` in their order, with all that anyone has written before.
    // Errors: unavailable (no endpoint answered, or etcd refused: the sentence has each endpoint's
    // reason and what to do).
    Answer<std::vector<KeyValue>> range(std::string from, std::string to);

    // Writes the key unless it exists, and says what stands there. A try whose answer was lost is
    // repeated at the next endpoint and finds what it has written. Errors: as above; then nobody
    // knows whether it was written.
    Answer<std::string> create(std::string key, std::string value);

    // "etcd:a:2379,b:2379"
    std::string name() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
