// The results of one step of the machine: its effects, in order, and the latest time of the next
// step.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

class Output {
  public:
    // A step begins with no effects and no wake-up time.
    void begin() {
        effects_.clear();
        wake_ = kNever;
        has_said_ = false;
    }
    Effects take() { return std::exchange(effects_, {}); }
    Time wake() const { return wake_; }
    void sleep() { wake_ = kNever; }  // nothing is waited for any more

    void add(Effect effect) { effects_.push_back(std::move(effect)); }
    void send(Session session, ToNode message) { add(Send{session, std::move(message)}); }
    void close(Session session) { add(Close{session}); }
    void note(Note::Level level, std::string sentence) {
        has_said_ |= level >= Note::Level::info;
        add(Note{level, std::move(sentence)});
    }
    bool has_said() const { return has_said_; }  // a line of this step stands in every log
    void wake_at(Time when) { wake_ = std::min(wake_, when); }

  private:
    Effects effects_;
    Time wake_ = kNever;
    bool has_said_ = false;
};

}  // namespace ddprun::rendezvous
