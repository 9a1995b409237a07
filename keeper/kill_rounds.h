// Kills everything below this process without blocking the loop: rounds (killing.h) with a timer
// between them. ddprun does this when its keeper has died; it is a subreaper and has inherited the
// keeper's processes. Programs that ddprun runs for itself (child_program.h) are no part of them:
// one that hangs in the kernel would keep the next keeper waiting.
//
// Thread: the loop's. Owner: Keeper.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "keeper/killing/killing.h"

namespace ddprun::agent {

class KillRounds {
  public:
    KillRounds(boost::asio::io_context& io, Killing::OnSurvivor on_survivor)
        : io_(io), timer_(io), rounds_(std::move(on_survivor)) {}

    // What there will be to kill: see Killing.
    void started(pid_t worker) { rounds_.started(worker); }
    void reaped(pid_t worker, int wait_status) { rounds_.reaped(worker, wait_status); }
    void forget() { rounds_.forget(); }

    // Calls `done` when nothing is left, perhaps at once. The callback may destroy this object.
    void run(std::function<void()> done);
    // `done` is not called any more.
    void stop();

  private:
    void round();

    boost::asio::io_context& io_;
    boost::asio::steady_timer timer_;
    Killing rounds_;
    std::function<void()> done_;  // empty: not running
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
