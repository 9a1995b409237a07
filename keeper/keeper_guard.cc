// Runs the watch over the keeper.
#include "keeper/keeper_guard.h"

#include <utility>

#include "base/system/boot_clock.h"

namespace ddprun::agent::keeper {

Guard::Guard(boost::asio::io_context& io, Duration patience, Ask ask, OnFrozen on_frozen)
    : watch_(patience), timer_(io), ask_(std::move(ask)), on_frozen_(std::move(on_frozen)) {}

void Guard::begin(pid_t keeper) {
    keeper_ = keeper;
    watch_.begin(boot_now());
    arm();
}

void Guard::work_asked() {
    if (watch_.work_asked(boot_now())) arm();
}

void Guard::answered() {
    watch_.answered(boot_now());
    arm();
}

void Guard::stop() {
    watch_.end();
    timer_.cancel();
}

// A handler that is queued already runs after stop(), or after the end of this object.
void Guard::arm() {
    if (watch_.next() == kNever) return;
    timer_.expires_after(watch_.next() - boot_now());
    timer_.async_wait(
        [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
            if (!error && alive.lock()) look();
        });
}

void Guard::look() {
    const Time now = boot_now();
    switch (watch_.look(now, pulse_of(keeper_))) {
        case Watch::Due::frozen:
            return on_frozen_(watch_.silence(now));
        case Watch::Due::ask:
            ask_();
            break;
        case Watch::Due::nothing:
            break;
    }
    arm();
}

}  // namespace ddprun::agent::keeper
