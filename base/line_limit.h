// How many lines about strangers a log gets: ten in ten seconds. The rest is counted. A sentence
// that repeats the last one gets no line for a minute, and is not counted. Pure.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/time.h"

namespace ddprun {

class LineLimit {
  public:
    struct Said {
        bool allowed = false;
        int unsaid = 0;  // lines that were not allowed in the ten seconds before; told once
    };
    Said say(Time now, const std::string& sentence = {}) {
        if (!sentence.empty() && sentence == last_ && now - repeated_since_ < kRepeated) return {};
        last_ = sentence;
        repeated_since_ = now;
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
    static constexpr Duration kRepeated = std::chrono::seconds{60};
    static constexpr int kLines = 10;

    Time since_ = kLongAgo, repeated_since_ = kLongAgo;
    std::string last_;
    int lines_ = 0, unsaid_ = 0;
};

}  // namespace ddprun
