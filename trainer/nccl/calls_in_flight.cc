// A queue of calls and the times of its front.
#include "trainer/nccl/calls_in_flight.h"

#include <algorithm>
#include <string>

namespace ddprun::trainer {
namespace {

constexpr auto kSlow = std::chrono::seconds(1);

}  // namespace

CallsInFlight::Ticket CallsInFlight::begin(const Operation& operation, Time now) {
    calls_.push_back({++last_, operation, now});
    return last_;
}

void CallsInFlight::ended(Ticket ticket, Time now) {
    while (!calls_.empty() && calls_.front().ticket <= ticket) {
        calls_.pop_front();
        last_end_ = now;
    }
}

CallsInFlight::Time CallsInFlight::since() const {
    return std::max(calls_.front().begun, last_end_);
}

std::optional<Error> CallsInFlight::overdue(Time now) const {
    if (calls_.empty() || now - since() <= timeout_) return std::nullopt;
    return Error(ErrorCode::timed_out,
                 "timed out after " + std::to_string(timeout_.count()) + " ms");
}

bool CallsInFlight::slow(Time now) const { return !calls_.empty() && now - since() >= kSlow; }

bool CallsInFlight::look_at_others(Time now) {
    if (!slow(now) || now - last_look_ < kSlow) return false;
    last_look_ = now;
    return true;
}

const CallsInFlight::Call* CallsInFlight::failed(Ticket ticket) const {
    for (const Call& call : calls_)
        if (call.ticket == ticket) return &call;
    return oldest();
}

}  // namespace ddprun::trainer
