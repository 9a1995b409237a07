// Makes a temporary folder for this ddprun, and removes those of other ddpruns that could not
// remove theirs. This happens when ddprun and its keeper are killed at the same moment, as Slurm
// does when its patience ends.
//
// A living ddprun, and its keeper, hold a lock on its folder. A folder without a lock belongs to a
// dead one if it is owned by this user, is on a local file system (locks of other hosts may be
// invisible), and has the record of an origin. One without a record is removed only if it is empty
// and has not been changed for a minute (it may just have been made). Blocking calls that may hang
// with the file system: use the file thread.
#pragma once

#include <string>
#include <vector>

#include "base/system/unique_fd.h"

namespace ddprun::agent {

// A folder, and the lock that shows that its owner lives.
struct TemporaryFolder {
    std::string path;  // absolute; empty on failure, and errno says why
    UniqueFd lock;
};

// Parents in the order to be tried: the first that has plenty of room, then the others, and last
// those that can take nothing. Less than 256 MiB is not plenty: a loader of PyTorch soon fills the
// 64 MiB that containers usually have in /dev/shm, and then no worker can write why it fails.
std::vector<std::string> by_room(std::vector<std::string> parents);

// A random name for a temporary folder. The keeper gets it before the folder is made, and so no
// folder is left if ddprun is killed in between.
std::string draw_temporary_name();
// Makes a folder with this name in `parent` and locks it; with another one if it is taken or empty.
TemporaryFolder make_temporary_folder(const std::string& parent, const std::string& name = {});
// Writes who owns the folder, from its lock on. The text comes back in AbandonedFolder.
void record_origin(const TemporaryFolder& folder, const std::string& origin);

// The folder of a dead ddprun, of which processes may be left. While this object lives, no other
// ddprun takes the folder for abandoned.
struct AbandonedFolder {
    std::string path, origin;
    UniqueFd lock;
};
// The folders of other ddpruns, without those that are gone now.
struct OthersFolders {
    std::vector<AbandonedFolder> abandoned;
    // Somebody has the lock: the owner lives, or was killed just now and has not come to its end.
    std::vector<std::string> held;
};
// Looks whose owner is dead. Those with a record are returned, and empty ones are removed.
OthersFolders look_at_folders(const std::vector<std::string>& paths);
// The same for those beside this ddprun's own, 64 at most.
OthersFolders look_beside(const TemporaryFolder& own);

}  // namespace ddprun::agent
