// How many lines about strangers a log gets: ten in ten seconds. The rest is counted. Pure.
#pragma once

#include <chrono>
#include <utility>

#include "base/time.h"

namespace ddprun {

class LineLimit {
  public:
    struct Said {
        bool allowed = false;
        int unsaid = 0;  // lines that were not allowed in the ten seconds before; told once
    };
    Said say(Time now) {
        Said said;
        if (now - since_ >= kPeriod) {
            said.unsaid = std::exchange(unsaid_, 0);
            since_ = now;
            lines_ = 0;
        }
        said.allowed = ++lines_ <= kLines;
        if (!said.allowed) ++unsaid_;
        return said;
    }

  private:
    static constexpr Duration kPeriod = std::chrono::seconds{10};
    static constexpr int kLines = 10;

    Time since_ = kLongAgo;
    int lines_ = 0, unsaid_ = 0;
};

}  // namespace ddprun
