// Signals that are passed on to the workers and stop nothing, such as SIGUSR1 from Slurm. A worker
// that does not handle one yet would die of it, for example while it is still importing. It is
// spared, and gets the signal once it handles it.
//
// Thread: the loop's. Owner: the worker set.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

class PassedSignals {
  public:
    // Passes a signal on to a worker. Returns false if the worker would die of it. A worker that
    // has ended needs none.
    using PassOn = std::function<bool(int worker, int signal)>;

    PassedSignals(boost::asio::io_context& loop, PassOn pass_on)
        : timer_(loop), pass_on_(std::move(pass_on)) {}

    // This worker was spared: tries again and again, at longer and longer intervals.
    void spared(int worker, int signal);
    // The workers are being stopped.
    void forget();

  private:
    void try_later();

    boost::asio::steady_timer timer_;
    PassOn pass_on_;
    std::set<std::pair<int, int>> open_;  // worker and signal
    Duration pause_{};
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// For example "SIGUSR1 was kept from ranks 0, 1, 2 and 5 more: …".
std::string spared_sentence(int signal, const std::vector<int>& ranks);

}  // namespace ddprun::agent
