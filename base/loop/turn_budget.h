// Shares each turn of the loop among those who read what a worker writes: a worker that writes
// without a pause always has more to read, and signals, Beats and the others must have their turn.
//
// A turn is what the loop does between two looks at its descriptors and timers. All readers
// together get so many bytes of it, in the order in which they ask; the rest waits for the next
// turn.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

namespace ddprun {

class TurnBudget : public std::enable_shared_from_this<TurnBudget> {
  public:
    // Half a megabyte: with the shortest lines and prefixes, some milliseconds of work.
    static constexpr std::size_t kBytes = std::size_t{512} << 10;
    // Reads a bounded number of bytes and returns how many.
    using Read = std::function<std::size_t()>;

    explicit TurnBudget(boost::asio::io_context& loop, std::size_t bytes = kBytes)
        : loop_(loop), limit_(bytes) {}

    // Calls `read` once: now if nobody waits and something is left of this turn, else later from
    // the loop. A reader that has more to read asks again.
    void spend(Read read);

  private:
    void serve();

    boost::asio::io_context& loop_;
    std::size_t limit_;
    std::size_t spent_ = 0;  // of this turn
    bool serving_ = false;   // serve() is running
    bool counting_ = false;  // the next turn has been asked for
    std::deque<Read> waiting_;
};

}  // namespace ddprun
