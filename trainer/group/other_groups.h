// OtherGroups: in which call of another group of this process a rank waits.
//
// Ranks that call two groups in another order wait for each other, each in the call of a group that
// the other one has not reached. Neither group can see that alone. So each group's watcher writes
// into the store of its group in which call of another group this rank waits, and the time-out of
// a rank that misses it there says so (FailureStory).
//
// Threads: tell() in one thread of the owner, the rest in any.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "trainer/group/failure_story.h"

namespace ddprun::trainer {

class OtherGroups {
  public:
    // The call in which the group has waited for a while; empty: none. Nothing when a call has
    // failed: then the ranks want to read in which one this rank was, so what was told stays. It is
    // called by threads of other groups, from the constructor until the destructor has returned.
    using LongCall = std::function<std::optional<std::string>()>;

    explicit OtherGroups(LongCall mine);
    ~OtherGroups();
    OtherGroups(const OtherGroups&) = delete;
    OtherGroups& operator=(const OtherGroups&) = delete;

    // Writes what has changed since the last time. The owner holds no lock that `mine` takes.
    void tell(FailureStory& story);

  private:
    const LongCall mine_;
    std::string told_;
};

}  // namespace ddprun::trainer
