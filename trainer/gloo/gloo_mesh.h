// A Gloo context between all ranks, met over our store, and what Gloo itself does not know: which
// of the process's sockets are its own (so that a running call can be cut), which rank is at the
// other end of each, and that a rank is gone for which nobody here happens to wait.
//
// A thread of its own watches the far ends. When one closes without having said goodbye in the
// store, its rank is dead or has cut the group, and everything is cut here too: so the news crosses
// the job in one step, also past a rank that hangs. Thread: connect() and leave() in one; cut()
// from any. The sockets belong to Gloo; we hold duplicates, which are only ever watched and shut
// down.
#pragma once

#include <gloo/context.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "trainer/gloo/gloo_calls.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class GlooMesh {
  public:
    // Errors: timed_out, naming a rank that did not come; unavailable.
    static Result<std::unique_ptr<GlooMesh>> connect(const Context& context, Store& store,
                                                     std::chrono::milliseconds timeout);
    ~GlooMesh();
    GlooMesh(const GlooMesh&) = delete;
    GlooMesh& operator=(const GlooMesh&) = delete;

    GlooCalls& calls() { return *calls_; }

    // Ends what is waited for here, and shuts all connections down, which wakes the other ranks.
    void cut();

    // Says goodbye, so that the others do not take the closing of our sockets for a death; to be
    // called before an orderly destruction.
    void leave(Store& store) const;

    // The rank whose end some watcher saw first, on any rank; -1 when none has said so within a
    // moment. `store` is the caller's.
    int first_lost(Store& store) const;

    // Gloo's message names an address; this gives the rank behind it, -1 when it names none of
    // ours.
    int rank_in(const std::string& message) const;

  private:
    struct Link {
        int fd;
        std::string local, peer;  // "[10.0.0.7]:4711", as Gloo writes them
        int rank = -1;
    };

    GlooMesh() = default;
    static std::vector<Link> connected_sockets();
    void find_links(const std::vector<Link>& before);
    Result<void> watch(const Store& store);
    void serve();
    bool said_goodbye(int rank);
    void say_lost(int rank);

    std::shared_ptr<::gloo::Context> context_;
    std::unique_ptr<GlooCalls> calls_;
    std::vector<Link> links_;          // with duplicates as descriptors; fixed after connect()
    int wake_ = -1;                    // eventfd: the watcher shall end
    std::unique_ptr<Store> goodbyes_;  // the watcher's own connection
    std::atomic<bool> cut_{false};
    std::thread watcher_;
    std::map<std::string, int> names_;  // far end → rank; outlives a cut
};

// What one of Gloo's exceptions, or one of ours that passed through Gloo, means.
Error error_of_gloo(const std::exception& exception);

}  // namespace ddprun::trainer
