// When to look for a newer allocation, and what a stall forbids (allocation_watch.h).
#include "rendezvous/parts/allocation_watch.h"

#include <utility>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {
namespace {

// Every ledger answers within one lease, if only by an error (ledger_watch.h).
constexpr Share kAnsweredBy{1000};

}  // namespace

void AllocationWatch::stepped(Time now, Duration lease) {
    const Time before = std::exchange(stepped_, now);
    if (before == kNever || now - before <= share(lease, kStall)) return;
    blocked_ = true;
    woke_ = now;
}

bool AllocationWatch::is_fresh(std::uint64_t random, Time now, Duration lease) const {
    return random == random_ && now - proposed_ <= share(lease, kAllocationAnswer);
}

std::optional<std::int64_t> AllocationWatch::looks(Time now, Duration lease) {
    if (now < looks_at(lease)) return std::nullopt;
    return ask(now);
}

Time AllocationWatch::looks_at(Duration lease) const {
    if (asks_anew()) return woke_;
    return asked_ + share(lease, open_ ? kAnsweredBy : kAllocationLook);
}

std::int64_t AllocationWatch::ask(Time now) {
    asked_ = now;
    open_ = true;
    return ++number_;
}

bool AllocationWatch::answered(std::int64_t number) {
    if (number != number_) return false;
    open_ = false;
    if (!asks_anew()) blocked_ = false;
    return true;
}

bool AllocationWatch::may_grant(Time now, Duration lease) const {
    return !blocked_ || now - woke_ > share(lease, kAllocationAnswer);
}

}  // namespace ddprun::rendezvous
