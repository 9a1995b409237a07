// Gives each reader its share of the turn.
#include "base/loop/turn_budget.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace ddprun {

void TurnBudget::spend(Read read) {
    waiting_.push_back(std::move(read));
    if (!serving_) serve();
}

// What is posted here runs after the loop has looked at its descriptors and timers again.
void TurnBudget::serve() {
    // A reader may be the last one that holds this object, and let it go.
    const auto self = shared_from_this();
    serving_ = true;
    while (!waiting_.empty() && spent_ < limit_) {
        const Read read = std::move(waiting_.front());
        waiting_.pop_front();
        // A read that found nothing has cost a system call.
        spent_ += std::max<std::size_t>(read(), 1);
    }
    serving_ = false;
    if (spent_ == 0 || std::exchange(counting_, true)) return;
    boost::asio::post(loop_, [weak = std::weak_ptr(self)] {
        const auto self = weak.lock();
        if (!self) return;
        self->counting_ = false;
        self->spent_ = 0;
        self->serve();
    });
}

}  // namespace ddprun
