// When the leader looks for nodes that joined while a smaller world runs, and since when they wait.
// late_joiner.h decides whether they are taken in.
//
// The leader looks when a node joins, at each snapshot that a worker reports, and at intervals. A
// look at each event would be too expensive with ten thousand nodes.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/rules/late_joiner.h"

namespace ddprun::rendezvous {

class LateJoinWatch {
  public:
    void generation_began() { since_ = kNever; }
    // A node joined, or there may be more room.
    void look_anew() { next_look_ = kLongAgo; }

    // `snapshot`: the newest that a worker reported. False: look again at next_look().
    bool is_due(Time now, std::int64_t snapshot) const {
        return now >= next_look_ || snapshot != looked_at_;
    }
    Time next_look() const { return next_look_; }

    struct World {
        int members = 0;                   // of the generation that runs
        bool ending = false;               // some of its workers have finished already
        std::int64_t snapshot = -1;        // the newest that was reported
        std::vector<std::string> waiting;  // nodes that could be members of the next generation
    };
    // Empty: no node waits.
    std::optional<JoinVerdict> look(Time now, const World& world, const Limits& limits);

  private:
    Time since_ = kNever;         // since when somebody waits
    std::int64_t snapshot_ = -1;  // the newest snapshot of that time
    Time next_look_ = kLongAgo;
    std::int64_t looked_at_ = -1;  // the newest snapshot at the last look
};

}  // namespace ddprun::rendezvous
