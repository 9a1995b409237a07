// A thread for looks at workers that may hang, one look at a time.
//
// A look that does not come back is given up when the next generation is watched: that one has
// other processes. So that a kernel that lets nobody look does not collect threads, a look is given
// up only while fewer than kGivenUp have not come back; then nothing is looked at until one has.
//
// Thread: the loop's.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "base/loop/file_thread.h"
#include "base/time.h"

namespace ddprun::agent {

class LookThread {
  public:
    static constexpr int kGivenUp = 4;

    explicit LookThread(boost::asio::io_context& loop);
    // A look that hangs is left to itself.
    ~LookThread();

    bool is_busy() const { return busy_since_.has_value(); }
    // For how long the look has lasted that is under way; 0: there is none.
    Duration lasted(Time now) const { return busy_since_ ? now - *busy_since_ : Duration{}; }
    // Looks, while it is not busy. `done` follows on the loop, unless the look is given up.
    void look(Time now, std::function<void()> work, std::function<void()> done);
    // Gives up the look that is under way, if it may.
    void give_up();

  private:
    boost::asio::io_context& loop_;
    std::unique_ptr<FileThread> thread_;
    std::optional<Time> busy_since_;
    std::shared_ptr<std::atomic<int>> under_way_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace ddprun::agent
