// CallOutcome: how calls of libtorch's Gloo end, and the end of waiting for those that never would.
//
// libtorch's Gloo forgets a send whose connection breaks after the receiver has asked for the data;
// nobody is woken before the group's timeout. So a wait here ends two seconds after the group's
// connections were cut, whatever Gloo does. The object is shared with libtorch's threads, because a
// call that was given up may end later. Any thread may call end().
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>

namespace ddprun::trainer {

// Thrown by wait() when it gives up.
struct GivenUp : std::runtime_error {
    GivenUp() : std::runtime_error("libtorch's Gloo did not end its call") {}
};

class CallOutcome {
  public:
    // What a waiting rank looks at. Both are called in the waiting thread.
    struct Group {
        std::function<bool()> is_cut;           // cheap: asked 20 times a second
        std::function<void()> ask_other_ranks;  // may cut: asked twice a second
    };

    // `calls`: how often end() will be called.
    explicit CallOutcome(std::size_t calls) : open_(calls) {}

    // A call has ended; with an exception, if it failed.
    void end(const std::exception_ptr& failure);

    // Waits for all calls, or for the first that fails, and throws its exception. `patience`: how
    // long the calls may go on after the connections are cut.
    void wait(const Group& group, std::chrono::milliseconds patience = std::chrono::seconds(2));

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t open_;  // calls that have not ended
    std::exception_ptr failure_;
};

}  // namespace ddprun::trainer
