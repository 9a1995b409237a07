// Asks the keeper in time whether it works, and tells when it is frozen: keeper_watch.h with a
// timer and the clocks.
//
// Thread: the loop's. Owner: Keeper.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "keeper/keeper_watch.h"

namespace ddprun::agent::keeper {

class Guard {
  public:
    // Sends the question to the keeper.
    using Ask = std::function<void()>;
    // The keeper has not answered for this time. The callback may destroy this object.
    using OnFrozen = std::function<void(Duration silence)>;

    Guard(boost::asio::io_context& io, Duration patience, Ask ask, OnFrozen on_frozen);

    // From now on this process is watched.
    void begin(pid_t keeper);
    void stop();
    // Somebody waits for what the keeper has just been asked to do.
    void work_asked();
    void answered();

  private:
    void arm();
    void look();

    Watch watch_;
    boost::asio::steady_timer timer_;
    Ask ask_;
    OnFrozen on_frozen_;
    pid_t keeper_ = -1;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent::keeper
