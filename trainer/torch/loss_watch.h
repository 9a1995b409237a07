// LossWatch: notices that a rank's connection closes, also while this rank waits for another one or
// computes. A thread polls the connections. A rank that ends in order says goodbye in the store
// first; any other end is a loss. The first rank to see one writes which rank was lost to the
// store, and cuts its own group, so that all others notice too.
//
// Threads: the program's calls all functions; `cut` runs in the thread of the watch.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system/start_thread.h"
#include "base/system/wake_pipe.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class LossWatch {
  public:
    // `links`: the descriptor of each connection, and the rank at its far end. They must outlive
    // the watch. `cut` is called at most once. Errors: those of the store; unavailable.
    static Result<std::unique_ptr<LossWatch>> start(const Store& store,
                                                    std::vector<std::pair<int, int>> links,
                                                    std::function<void()> cut);
    ~LossWatch();
    LossWatch(const LossWatch&) = delete;
    LossWatch& operator=(const LossWatch&) = delete;

    // This rank cuts its connections itself: their end is no loss of another rank.
    void expect_cut() { cut_by_us_ = true; }

    // An orderly end of this rank: call it before its connections close.
    static void say_goodbye(Store& store, int rank);

    // The rank that was lost first, as the first witness wrote it. -1: nobody has written.
    static int first_lost(Store& store);

  private:
    LossWatch(std::unique_ptr<Store> store, std::vector<std::pair<int, int>> links,
              std::function<void()> cut);
    void serve();
    bool said_goodbye(int rank);
    void say_lost(int rank);

    const std::unique_ptr<Store> store_;  // a connection of its own
    const std::vector<std::pair<int, int>> links_;
    const std::function<void()> cut_;
    std::atomic<bool> cut_by_us_ = false;
    WakePipe wake_;  // ends the thread
    Thread thread_;
};

}  // namespace ddprun::trainer
