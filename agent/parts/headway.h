// How far the workers of a generation have got, judged by the node that has their store. A failure
// before all processes have met is most likely the program's own: an import, an argument, a missing
// file. Workers need not report anything for this: each that trains with others calls the store.
//
// Pure; owned by the agent machine of the node that has the store. Other nodes see no contacts.
#pragma once

#include <chrono>

#include "base/time.h"
#include "rendezvous/model/reach.h"

namespace ddprun::agent {

// A program none of whose processes has called the store for so long is taken for one that never
// does. Python may import for that long from a slow disk.
inline constexpr auto kCallsNoStore = std::chrono::seconds{30};
// A program of which only some processes call the store has met after this time.
inline constexpr auto kSomeCallNoStore = std::chrono::seconds{60};
// Workers that live so long after they have met have made progress, though they report none.
inline constexpr auto kLifeAfterMeeting = std::chrono::seconds{60};

class Headway {
  public:
    explicit Headway(int world_size) : world_size_(world_size) {}

    // The last worker of this node has been started. Those of the others start at about that time.
    void started(Time now) { started_at_ = now; }
    // So many different processes have called the store by now.
    void in_contact(int processes, Time now);

    rendezvous::Reach at(Time now) const;
    // When at() will be more than `known` if nothing else happens; kNever: no such time is known.
    Time more_at(rendezvous::Reach known) const;

  private:
    Time met_at() const;

    int world_size_;
    int contacts_ = 0;
    Time started_at_ = kNever, all_called_at_ = kNever;
};

}  // namespace ddprun::agent
