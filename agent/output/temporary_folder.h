// A folder of ddprun's own that goes with it; and those of others that could not remove theirs:
// ddprun and keeper were killed at once, as Slurm does at the end of its patience.
//
// Whose ddprun lives holds a lock on its folder. One without is of the dead, if it is of this user,
// has not been touched for a minute (it may just have been made) and lies on a file system of this
// host: a lock may not be seen from another. May hang with the file system: file thread.
#pragma once

#include <string>

#include "base/system/unique_fd.h"

namespace ddprun::agent {

struct TemporaryFolder {
    std::string path;  // absolute; empty: none, and errno says why
    UniqueFd lock;
};

TemporaryFolder make_temporary_folder(const std::string& parent);
// All such folders there that nobody holds.
void remove_abandoned_folders(const std::string& parent);

}  // namespace ddprun::agent
