// Whether a rank is slow long enough to be told. Nodes measure over a minute, and a rank may be
// slow in one because it saves or evaluates: it must be the same one for some minutes.
//
//   none ──a rank is slow──▶ counting ──the same one for 3 min──▶ told ──four times as long──▶ told
//    ▲──────────── none is, or another one ──────────┴──────────────┘
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <optional>

#include "base/time.h"
#include "rendezvous/hangs/straggler.h"

namespace ddprun::rendezvous {

class StragglerWatch {
  public:
    // Another generation has begun.
    void forget() { rank_.reset(); }
    // Whether to look now: each 15 s, since a look goes over all nodes, and they tell once a
    // minute.
    bool is_due(Time now);
    // What is found now. True: it is to be told.
    bool judged(Time now, const std::optional<Straggler>& found);

  private:
    std::optional<int> rank_;
    Time since_{}, looked_at_ = kLongAgo;
    Duration next_{};  // told when it has lasted so long
};

}  // namespace ddprun::rendezvous
