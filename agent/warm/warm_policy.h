// When workers are forked from a server, and when one is prepared. Pure.
//
//   begin(now)        a generation starts; warm_allowed() says whether the server may be used
//   prepare_at()      when to prepare a server, or to import more in it: while the generation
//                     trains
//   progressed(now)   a worker has reported progress
//   ended(now, bad)   the generation has ended
//
// Nobody can prove that a forked worker behaves as a cold one. So a warm generation that fails
// early, without progress, makes the next one cold. If that one fares better, the warm start is to
// blame; after a second time the job stays cold. If it fails early, too, the program is.
#pragma once

#include "base/time.h"

namespace ddprun::agent::warm {

enum class Mode {
    off,
    automatic,  // starts wait for no server, unless that is quicker (wait_is_quicker())
    always,     // starts wait for the server, the first one, too
};

// A generation that lives longer has started well.
inline constexpr Duration kEarly = std::chrono::seconds{10};
// This long after the start of the workers most have imported what they need.
inline constexpr Duration kSettled = std::chrono::seconds{15};
// After the first progress most have. The late imports of the first step belong to it.
inline constexpr Duration kAfterProgress = std::chrono::seconds{1};

class WarmPolicy {
  public:
    explicit WarmPolicy(Mode mode) : mode_(mode) {}

    void begin(bool warm, Time now);
    void progressed(Time now);
    // It has been started cold after all.
    void went_cold() { warm_ = false; }
    // One process imports what is known sooner than all workers would.
    void wait_is_quicker(bool quicker) { quicker_ = quicker; }
    // Returns whether the next generation has become cold by this.
    bool ended(bool failed, Time now);

    bool off() const { return mode_ == Mode::off || blamed_ >= kMostBlamed; }
    // Whether the next generation may come from a server.
    bool warm_allowed() const { return !off() && !next_is_cold_; }
    // Whether the next generation waits for a server that is not ready.
    bool waits_for_server() const { return (mode_ == Mode::always || quicker_) && warm_allowed(); }
    // kNever: not in this generation.
    Time prepare_at() const { return prepare_at_; }

  private:
    bool is_early(Time now) const { return !progressed_ && now - began_ < kEarly; }

    static constexpr int kMostBlamed = 2;

    Mode mode_;
    bool quicker_ = false;
    bool warm_ = false, progressed_ = false, next_is_cold_ = false;
    bool on_trial_ = false;  // this cold generation follows a warm one that failed early
    int blamed_ = 0;         // warm starts after which a cold one fared better
    Time began_ = kNever, prepare_at_ = kNever;
};

}  // namespace ddprun::agent::warm
