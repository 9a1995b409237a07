// When workers are forked from a server, and when a server is prepared. Pure.
//
//   begin(now)        a generation starts; warm_allowed() says whether the server may be used
//   next_look()       when to look what the workers have imported, while the generation trains
//   looked(now, …)    it has been looked; returns whether a server should import it now
//   progressed(now)   a worker has reported progress, or all workers have met
//   ended(now, …)     the generation has ended
//
// A warm generation that fails early, and whose workers neither met nor made progress, makes the
// next one cold. If that one fares better, the warm start is to blame; after a second time the job
// stays cold. If it fails early, too, the program is.
#pragma once

#include "agent/parts/warm_mode.h"
#include "base/time.h"

namespace ddprun::agent::warm {

// A generation that lives longer has started well.
inline constexpr Duration kEarly = std::chrono::seconds{10};
// This long after the start of the workers most have imported what they need.
inline constexpr Duration kSettled = std::chrono::seconds{15};
// Between two looks at what the workers have imported, while there is more each time. The pause
// doubles up to kLongest while there is nothing new.
inline constexpr Duration kLook = std::chrono::seconds{1};
inline constexpr Duration kLongest = std::chrono::seconds{64};

class WarmPolicy {
  public:
    // `crowded`: the workers leave no CPU free. Then a server waits until they have imported.
    WarmPolicy(Mode mode, bool crowded) : mode_(mode), crowded_(crowded) {}

    void begin(bool warm, Time now);
    void progressed(Time now);
    // It has been started cold after all.
    void went_cold() { warm_ = false; }
    // `some`: workers have imported something of the list; `grew`: more than at the last look.
    bool looked(bool some, bool grew, Time now);
    // `met`: the workers of all nodes. Returns whether the next generation has become cold by this.
    bool ended(bool failed, bool met, Time now);

    bool off() const { return mode_ == Mode::off || blamed_ >= kMostBlamed; }
    // Whether the next generation may come from a server.
    bool warm_allowed() const { return !off() && !next_is_cold_; }
    // Whether the next generation waits for a server that is not ready.
    bool waits_for_server() const { return mode_ == Mode::always && warm_allowed(); }
    // kNever: no generation trains.
    Time next_look() const { return next_look_; }

  private:
    static constexpr int kMostBlamed = 2;

    Mode mode_;
    bool crowded_;
    bool warm_ = false, progressed_ = false, next_is_cold_ = false;
    bool on_trial_ = false;  // this cold generation follows a warm one that failed early
    int blamed_ = 0;         // warm starts after which a cold one fared better
    Time began_ = kNever, next_look_ = kNever;
    Duration pause_ = kLook;
};

}  // namespace ddprun::agent::warm
