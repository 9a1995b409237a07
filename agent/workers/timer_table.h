// torchrun's file timers: a worker writes one line of JSON before and after a stretch of work that
// must not take long; who does not come back in time is killed. Here: the lines, and which timers
// have run out. Wall clock in seconds since 1970, as the workers write it. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ddprun::agent {

struct TimerRequest {
    std::int64_t pid = 0;
    std::string scope;
    double expires = 0;  // negative: the stretch of work is over
    int signal = 9;      // to be sent when it expires; 0 or less: none
};

// {"version": 1, "pid": 7, "scope_id": "…", "expiration_time": 1.5, "signal": 9}. Possible errors:
// malformed, with the beginning of the line.
Result<TimerRequest> read_timer_request(std::string_view line);

class TimerTable {
  public:
    void take(TimerRequest request);
    // Those whose time is over; they are forgotten, and so are all others of their process.
    std::vector<TimerRequest> due(double now);
    // When to look again.
    std::optional<double> next() const;

  private:
    std::map<std::pair<std::int64_t, std::string>, TimerRequest> timers_;
};

}  // namespace ddprun::agent
