// GlooMesh: the connections between all ranks, made by Gloo with addresses from our store. It adds
// what Gloo does not know: which sockets of the process belong to it (so that a running call can be
// cut), which rank is at the other end of each, and that a rank is gone although nobody here waits
// for it.
//
// A thread of its own watches the sockets. If one closes and its rank has not announced its end in
// the store (leave()), that rank is dead or has cut its group. Then everything is cut here too. So
// the news reaches all ranks in one step, also past a rank that hangs.
//
// Threads: connect() and leave() from one thread, cut() from any. Gloo owns the sockets. This class
// holds duplicates of the descriptors, and only polls them and shuts them down.
#pragma once

#include <gloo/context.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/start_thread.h"
#include "base/system/wake_pipe.h"
#include "trainer/gloo/gloo_calls.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class GlooMesh {
  public:
    using Clock = std::chrono::steady_clock;

    // Connects to all ranks, until `deadline` (see gloo_meeting.h). `timeout`: of each later call.
    // `shares_memory`: GroupOptions::shares_memory.
    // Errors: timed_out, with the ranks that did not come; unavailable; those of the store.
    static Result<std::unique_ptr<GlooMesh>> connect(const Context& context, Store& store,
                                                     Clock::time_point deadline,
                                                     std::chrono::milliseconds timeout,
                                                     bool shares_memory = true);
    ~GlooMesh();
    GlooMesh(const GlooMesh&) = delete;
    GlooMesh& operator=(const GlooMesh&) = delete;

    GlooCalls& calls() { return *calls_; }

    // Ends all waits here and shuts all connections down, which wakes the other ranks.
    void cut();

    // From now on the watcher calls this once a second, with its own connection to the store. Null:
    // no more; then none is running when it returns.
    using Look = std::function<void(Store&)>;
    void look_by(Look look);

    // Says goodbye in the store, so that the other ranks do not take the closing of our sockets for
    // a death. Call it before an orderly destruction.
    void leave(Store& store) const;

    // The rank that a watcher, on whatever rank, saw disappear first. -1 if no watcher has reported
    // one within 300 ms. `store` is the caller's connection.
    int first_lost(Store& store) const;

    // Whether this rank has left in order: by leave(), and not by a cut.
    bool has_left(Store& store, int rank) const;

    // Gloo's messages name an address. This function gives its rank; -1 if it is none of ours.
    int rank_in(const std::string& message) const;

  private:
    struct Link {
        int fd;
        std::string local, peer;  // "[10.0.0.7]:4711", as Gloo writes it
        int rank = -1;
    };

    GlooMesh() = default;
    static std::vector<Link> connected_sockets();
    void find_links(const std::vector<Link>& before);
    Result<void> watch();
    void serve();
    bool said_goodbye(int rank);
    void say_lost(int rank);

    std::shared_ptr<::gloo::Context> context_;
    std::unique_ptr<GlooCalls> calls_;
    std::vector<Link> links_;          // hold duplicated descriptors; fixed after connect()
    WakePipe wake_;                    // tells the watcher to end
    std::unique_ptr<Store> goodbyes_;  // the watcher's own connection
    std::mutex look_mutex_;
    Look look_;
    std::atomic<bool> cut_{false};
    Thread watcher_;
    std::map<std::string, int> names_;  // address of the far end → rank; stays after a cut
};

// Translates an exception of Gloo's, or one of ours that came through Gloo's code, into an error.
Error error_of_gloo(const std::exception& exception);

}  // namespace ddprun::trainer
