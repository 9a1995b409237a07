// A Gloo context between all ranks, met over our store, and what Gloo itself does not know: which
// of the process's sockets are its own (so that a running call can be cut) and which rank is at the
// other end of each.
//
// Thread: connect() in one; cut() from any. The sockets belong to Gloo; we only ever shut them
// down.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/error.h"
#include "trainer/context.h"
#include "trainer/store.h"

namespace ddprun::trainer {

class GlooMesh {
  public:
    // Errors: timed_out, naming a rank that did not come; unavailable.
    static Result<std::unique_ptr<GlooMesh>> connect(const Context& context, Store& store,
                                                     std::chrono::milliseconds timeout);

    const std::shared_ptr<::gloo::Context>& context() const { return context_; }

    // Shuts all connections down: wakes whoever waits on them, here and on the other ranks.
    void cut();

    // Gloo's message names an address; this gives the rank behind it, -1 when it names none of
    // ours.
    int rank_in(const std::string& message) const;

  private:
    struct Link {
        int fd;
        std::string local, peer;  // "[10.0.0.7]:4711", as Gloo writes them
        int rank = -1;
    };

    static std::vector<Link> connected_sockets();
    void find_links(const std::vector<Link>& before);

    std::shared_ptr<::gloo::Context> context_;
    std::mutex mutex_;  // of links_' descriptors, against two cuts at once
    std::vector<Link> links_;
    std::map<std::string, int> names_;  // far end → rank; outlives a cut
};

// What one of Gloo's exceptions, or one of ours that passed through Gloo, means.
Error error_of_gloo(const std::exception& exception);

}  // namespace ddprun::trainer
