// Runs a loop until something is done, at the end of a program: its work is over, and a few last
// answers are waited for.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <concepts>

#include "base/time.h"

namespace ddprun {

// Until `done()` or the limit. The loop must not be running; it may have stopped for lack of work.
// What `done` looks at changes in handlers of the loop.
template <std::predicate Done>
void run_loop_until(boost::asio::io_context& loop, const Done& done, Duration limit) {
    boost::asio::steady_timer timer(loop, limit);
    bool late = false;
    timer.async_wait([&late](const boost::system::error_code& error) { late = !error; });
    while (!done() && !late) {
        if (loop.stopped()) loop.restart();
        loop.run_one();
    }
    timer.cancel();
    loop.restart();
    // Runs the cancelled timer's handler, which refers to this frame.
    while (loop.poll_one() != 0) continue;
}

}  // namespace ddprun
