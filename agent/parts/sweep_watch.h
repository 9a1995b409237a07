// Whether the keeper is killing what is left of a generation on this node, since when, and whether
// something survives SIGKILL because it hangs in the kernel.
//
// Pure; owned by the agent machine.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/time.h"

namespace ddprun::agent {

class SweepWatch {
  public:
    // Returns false if a sweep is under way already. `gentle`: the workers have succeeded, and what
    // they have left running has time.
    bool begin(Time now, Duration patience, bool gentle = false) {
        if (under_way_) return false;
        under_way_ = true;
        gentle_ = gentle;
        since_ = now;
        look_at_ = now + patience;
        return true;
    }
    bool is_under_way() const { return under_way_; }
    bool is_gentle() const { return under_way_ && gentle_; }
    // It has less time now.
    void hurry(Time now, Duration patience) { look_at_ = std::min(look_at_, now + patience); }
    void is_done() {
        under_way_ = false;
        look_at_ = kNever;
    }

    Time looks_at() const { return look_at_; }  // kNever: nobody looks
    // The sweep takes long: returns its duration, once.
    std::optional<Duration> look(Time now) {
        if (now < look_at_) return std::nullopt;
        look_at_ = kNever;
        return now - since_;
    }
    // Something cannot be killed: this node will never run anything again.
    void cannot_kill(const std::string& what) { stuck_ = what; }
    bool is_stuck() const { return !stuck_.empty(); }
    const std::string& stuck() const { return stuck_; }

  private:
    bool under_way_ = false;
    bool gentle_ = false;
    Time since_{};
    Time look_at_ = kNever;
    std::string stuck_;
};

}  // namespace ddprun::agent
