// The open file timers of torchrun's workers, and which of them have expired. Pure.
//
// A worker writes one line of JSON before a piece of work that must not take long, and another line
// after it. If the second line does not come in time, the worker gets a signal, usually SIGKILL.
// Times are seconds since 1970 on the wall clock, as the workers write them. Source:
// torch.distributed.elastic.timer.FileTimerClient.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ddprun::agent {

// One line: starts or releases a timer.
struct TimerRequest {
    std::int64_t pid = 0;
    std::string scope;   // name of the piece of work
    double expires = 0;  // negative: the work is done, release the timer
    int signal = 9;      // to be sent at expiry; 0 or less: none
};

// Parses {"version": 1, "pid": 7, "scope_id": "…", "expiration_time": 1.5, "signal": 9}. Possible
// errors: malformed, with the beginning of the line.
Result<TimerRequest> read_timer_request(std::string_view line);

// A timer is identified by its process and its scope.
class TimerTable {
  public:
    // Adds, replaces or releases a timer.
    void take(TimerRequest request);
    // Returns the timers that have expired. They and all other timers of their processes are
    // forgotten.
    std::vector<TimerRequest> due(double now);
    // When the next timer expires; empty when there is none.
    std::optional<double> next() const;

  private:
    using Key = std::pair<std::int64_t, std::string>;  // process and scope
    void forget(std::int64_t pid);

    std::map<Key, TimerRequest> timers_;
    std::set<std::pair<double, Key>> by_time_;  // the same timers: a worker may make many
};

}  // namespace ddprun::agent
