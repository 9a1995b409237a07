// A cluster of three etcds in this process that fail: behind real gRPC, so that all of our client
// runs. The three share one store, as the members of a cluster that has a majority.
//
// - a request is refused, as by a member that sees no leader
// - it is carried out, and the answer is lost
// - it gets no answer until the client has given up. It is never carried out, or late: after
//   requests that the client has sent since
// - the tokens of users are forgotten
//
// Thread: any. gRPC calls the services on threads of its own; one lock is around all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::rendezvous {

class SimulatedEtcd {
  public:
    SimulatedEtcd();
    ~SimulatedEtcd();

    LedgerPlace place(const std::string& path) const;

    // How requests fail from now on follows from the seed. `share`: how often; 0: never, and what
    // is late is carried out at once. `silent`: some get no answer, which costs the client's
    // patience.
    void fail(std::uint64_t seed, double share, bool silent = true);
    // Whether it lets in the user "job" with the password "word" only.
    void has_users(bool has);

    // How many requests there were of each kind, to see that something was tried.
    struct Counts {
        int refused = 0, lost = 0, silent = 0, late = 0, forgotten = 0, logins = 0;
    };
    Counts counts() const;

  private:
    class Cluster;
    std::unique_ptr<Cluster> cluster_;
};

}  // namespace ddprun::rendezvous
