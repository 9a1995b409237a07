// The time that passes between two lines of progress, for their rates. What is no training, such as
// a validation between them, is left out: else the rate after one would jump. Pure; times in
// seconds of any steady clock.
#pragma once

#include <algorithm>

namespace example {

class LineClock {
  public:
    void begin(double now) { from_ = now; }
    // This much of the time until the next line is no training.
    void leave_out(double seconds) { from_ += seconds; }
    // How long was trained since the last line. The next one begins now. Never 0, as rates divide
    // by it.
    double lap(double now) {
        const double trained = std::max(now - from_, 1e-9);
        from_ = now;
        return trained;
    }

  private:
    double from_ = 0;
};

}  // namespace example
