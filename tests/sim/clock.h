// Virtual time: the queue of all that will happen, each node's own clock, and the one source of
// chance. The true time stands in Time too; no node ever sees it. One thread; owned by the World.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "base/time.h"

namespace ddprun::sim {

// Chance from a seed, with the same numbers on every machine and library.
class Random {
  public:
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
// were asked for.
class Clock {
  public:
    using Action = std::function<void()>;

    Time now() const { return now_; }
    void at(Time when, Action action) {
        queue_.push(Entry{when < now_ ? now_ : when, ++sequence_, std::move(action)});
    }
    void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }

    bool empty() const { return queue_.empty(); }
    // Runs the next event; the queue must not be empty.
    void step() {
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
        bool operator<(const Entry& other) const {  // the queue's top is the greatest
            return when != other.when ? when > other.when : sequence > other.sequence;
        }
    };
    Time now_{};
    std::uint64_t sequence_ = 0;
    std::priority_queue<Entry> queue_;
};

// One host's CLOCK_BOOTTIME: somewhere else and a little too fast or too slow.
class NodeClock {
  public:
    NodeClock(Duration offset, double drift) : offset_(offset), drift_(drift) {}

    Time local(Time truth) const {
        return truth + offset_ + share(truth.time_since_epoch(), drift_);
    }
    // The first true moment at which this clock shows `local` or more; kNever stays kNever.
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
