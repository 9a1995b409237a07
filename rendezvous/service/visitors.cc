// Runs the loop a little longer (visitors.h).
#include "rendezvous/service/visitors.h"

#include "base/system/boot_clock.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::chrono::milliseconds kTheyLeave{500}, kLookAgain{10};

}  // namespace

void let_visitors_leave(boost::asio::io_context& loop, const Service& service) {
    const Time until = boot_now() + kTheyLeave;
    while (service.has_visitors() && boot_now() < until) {
        if (loop.stopped()) loop.restart();
        loop.run_one_for(kLookAgain);
    }
}

}  // namespace ddprun::rendezvous
