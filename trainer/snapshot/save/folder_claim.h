// FolderClaim: this process saves to a folder with one object only. Two of them would remove each
// other's snapshots.
//
// The list of claimed folders belongs to the process, which is one rank, so nothing is asked of the
// store or the file system and nothing is left behind by a process that dies. Two names of one
// folder (a link, a relative path) are one folder. Movable. Any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/error.h"

namespace ddprun::trainer {

class FolderClaim {
  public:
    // Claims an existing folder until the object is destroyed. Errors: usage, if it is claimed
    // already; unavailable, if it cannot be looked at.
    static Result<FolderClaim> make(const std::string& folder);
    ~FolderClaim();
    FolderClaim(FolderClaim&& other) noexcept : place_(std::exchange(other.place_, Place{})) {}
    FolderClaim& operator=(FolderClaim&& other) noexcept {
        std::swap(place_, other.place_);
        return *this;
    }

  private:
    using Place = std::pair<dev_t, ino_t>;  // device and number of the folder; zeros: moved away
    explicit FolderClaim(Place place) : place_(place) {}

    Place place_;
};

}  // namespace ddprun::trainer
