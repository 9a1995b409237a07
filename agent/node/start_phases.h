// Where the time of a start goes, from the request of the workers to the first progress. Pure.
//
//   program         until the last worker of this node runs its program
//   imports         until the last process of the job has asked the store for something
//   process group   until none asks any more: torch has connected all ranks by then
//   first step      until the first progress that is reported: also what the program loads
//
// Only the node with the store sees all four.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"

namespace ddprun::agent {

class StartPhases {
  public:
    // The workers of a generation are requested; `processes`: the world size.
    void begin(int processes, Time now);
    // A worker of this node runs.
    void started(Time now);
    bool under_way() const { return begun_.has_value(); }
    // So many processes have asked the store. Returns whether these are all, for the first time.
    bool met(int processes, Time now);
    // A worker has reported progress. Returns the phases in words for the first one of a
    // generation, else an empty text. `last_request`: the last one of the store.
    std::string progressed(Time now, std::optional<Time> last_request);

  private:
    int processes_ = 0;
    std::optional<Time> begun_, started_, met_;
};

}  // namespace ddprun::agent
