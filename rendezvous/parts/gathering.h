// The time between two generations: since when the leader gathers nodes, since when there are
// enough, for what it waits, and when it next logs that.
//
// With ten thousand nodes it would cost too much to count them at each event. Each event that can
// add a node gets a number. After a count that found k nodes missing, the leader counts again only
// after k more such events.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/time.h"
#include "proto/ids.h"

namespace ddprun::rendezvous {

class Gathering {
  public:
    explicit Gathering(Time now) : since_(now) {}

    void begin(Time now) {
        pause_ = kNextWord;
        since_ = now;
        since_min_ = kNever;
        waits_for_.clear();
        // 0 forces a fresh count: the old counts belong to another generation.
        all_back_at_ = enough_at_ = 0;
        back_ = kNoGeneration;
    }
    Time since() const { return since_; }
    Time since_min() const { return since_min_; }  // kNever: there are too few

    // ---- counting
    // A node has come back, or can become a member now.
    void somebody_came() { ++events_; }
    void fewer_may_be_enough() { enough_at_ = 0; }
    bool may_all_be_back() const { return events_ >= all_back_at_; }
    // A vow is never taken back: who waits for something else then need not count again.
    bool all_are_back(Generation from) const { return back_ == from; }
    void counted_absent(std::int64_t members, Generation of) {
        all_back_at_ = events_ + members;
        if (members == 0) back_ = of;
    }
    void member_is_gone() { all_back_at_ = 0; }  // one event may prove several
    bool may_be_enough() const { return events_ >= enough_at_; }
    void counted(Time now, int here, int needed) {
        enough_at_ = events_ + needed - here;
        if (here < needed)
            since_min_ = kNever;
        else if (since_min_ == kNever)
            since_min_ = now;
    }

    // ---- saying for whom the job waits
    void wait_for(std::string sentence) { waits_for_ = std::move(sentence); }
    const std::string& waits_for() const { return waits_for_; }  // empty: not known yet
    void generation_ended(Time now) { word_at_ = now + kFirstWord; }
    void speak_soon(Time now) { word_at_ = std::min(word_at_, now); }
    Time speaks_at() {
        if (word_at_ == kNever) word_at_ = since_ + kFirstWord;
        return word_at_;
    }
    // The longer it waits, the less often it says so.
    void spoke(Time now) {
        word_at_ = now + pause_;
        pause_ = std::min<Duration>(2 * pause_, kLongestPause);
    }

  private:
    static constexpr auto kFirstWord = std::chrono::seconds{5};  // after gathering has begun
    static constexpr auto kNextWord = std::chrono::seconds{30};
    static constexpr auto kLongestPause = std::chrono::minutes{10};

    Time since_;
    Time since_min_ = kNever;
    std::int64_t events_ = 0;
    std::int64_t all_back_at_ = 0, enough_at_ = 0;  // of events_
    Generation back_ = kNoGeneration;               // all its members are back, or gone
    std::string waits_for_;
    Time word_at_ = kNever;
    Duration pause_ = kNextWord;
};

}  // namespace ddprun::rendezvous
