// CallsInFlight: which calls of a group are under way on its stream, and to which of them a failure
// belongs.
//
// The stream carries them out in order, so the oldest one is the one that is running. Its time
// begins when the call before it has ended: a call is not late because it waits for another.
//
// Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/error.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

class CallsInFlight {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Ticket = std::uint64_t;  // 1 for the first call
    struct Call {
        Ticket ticket = 0;
        Operation operation;
        Time begun;
    };

    explicit CallsInFlight(std::chrono::milliseconds timeout) : timeout_(timeout) {}

    Ticket begin(const Operation& operation, Time now);
    // This call has ended, and all before it.
    void ended(Ticket ticket, Time now);

    // The call that is running; null if none is.
    const Call* oldest() const { return calls_.empty() ? nullptr : &calls_.front(); }

    // The error of a call that has taken too long.
    std::optional<Error> overdue(Time now) const;

    // Whether the running call takes a second already.
    bool slow(Time now) const;

    // Whether it is time to look what the other ranks wait for: a second after the oldest call
    // began, and each second from then on. True once each time.
    bool look_at_others(Time now);

    // The call to which a failure belongs: the one with the ticket, if it is under way, else the
    // oldest. Null: the failure came between calls.
    const Call* failed(Ticket ticket) const;

  private:
    Time since() const;

    const std::chrono::milliseconds timeout_;
    Ticket last_ = 0;
    std::deque<Call> calls_;
    Time last_end_{}, last_look_{};
};

}  // namespace ddprun::trainer
