// Virtual time of the simulator: the queue of all that will happen, each node's own clock, and the
// one source of chance. An hour of a job takes seconds. True time has the type Time, too, but no
// node ever sees it.
//
// One thread. Owned by the World.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "base/time.h"

namespace ddprun::sim {

// Random numbers from a seed, the same on every machine and with every library: a failing seed must
// fail again elsewhere. That is why no std::uniform_*_distribution is used, whose results may
// differ between libraries.
class Random {
  public:
    // The multiplication spreads neighbouring seeds, so that seed 1 and seed 2 give unlike jobs.
    explicit Random(std::uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15ULL + 0x1234567ULL) {}

    std::uint64_t bits() { return engine_(); }
    double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }  // [0, 1)
    bool chance(double p) { return unit() < p; }
    int below(int n) { return static_cast<int>(unit() * n); }
    int between(int low, int high) { return low + below(high - low + 1); }  // both ends included
    double real(double low, double high) { return low + (high - low) * unit(); }
    Duration span(Duration low, Duration high) { return low + share(high - low, unit()); }

  private:
    std::mt19937_64 engine_;
};

// The queue of events on true time. Events of the same moment happen in the order in which they
// were queued. Without this order the same seed could give two traces.
class Clock {
  public:
    using Action = std::function<void()>;

    Time now() const { return now_; }
    // A moment that has passed already counts as now.
    void at(Time when, Action action) {
        queue_.push(Entry{when < now_ ? now_ : when, ++sequence_, std::move(action)});
    }
    void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }

    bool empty() const { return queue_.empty(); }
    // Runs the next event; the queue must not be empty.
    void step() {
        // Moved out before pop(): the action may queue new events, and top() gives only a constant
        // reference. The order does not depend on the action, so the queue stays valid.
        Action action = std::move(const_cast<Entry&>(queue_.top()).action);
        now_ = queue_.top().when;
        queue_.pop();
        action();
    }

  private:
    struct Entry {
        Time when;
        std::uint64_t sequence;
        Action action;
        bool operator<(const Entry& other) const {  // the top of the queue is the greatest entry
            return when != other.when ? when > other.when : sequence > other.sequence;
        }
    };
    Time now_{};
    std::uint64_t sequence_ = 0;
    std::priority_queue<Entry> queue_;
};

// The day on which a simulation begins, since 1970.
inline constexpr Duration kDay = std::chrono::hours{24 * 20000};

// One host's CLOCK_BOOTTIME: it began at another moment than the others, and is a little too fast
// or too slow. Machines get only this time. So a rule that compares the clocks of two hosts fails
// in the simulator as it would in reality.
class NodeClock {
  public:
    NodeClock(Duration offset, double drift) : offset_(offset), drift_(drift) {}

    // It has stood still for so long, like that of a virtual machine that was suspended.
    void stood_still(Duration lasted) { offset_ -= lasted; }

    Time local(Time truth) const {
        return truth + offset_ + share(truth.time_since_epoch(), drift_);
    }
    // Returns the first true moment at which this clock shows `local` or more; kNever stays kNever.
    // The division rounds, so the result is corrected by single nanoseconds: a timer that fires too
    // early would find its deadline still ahead.
    Time truth(Time local) const {
        if (local == kNever) return kNever;
        const auto shown = (local - offset_).time_since_epoch();
        Time guess{share(shown, 1 / (1 + drift_))};
        while (this->local(guess) < local) guess += Duration{1};
        return guess;
    }

  private:
    Duration offset_;
    double drift_;
};

}  // namespace ddprun::sim
