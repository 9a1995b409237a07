// Removes a folder with all that is in it: the one place where ddprun does so. It removes only what
// belongs to this user, and never leaves the folder: links are not followed, whoever has put them
// there and whenever, and what is mounted inside stays.
//
// Thread: any. It waits for the file system. Errors are ignored: what cannot be removed stays.
#pragma once

#include <string>

namespace ddprun {

// `made`: a descriptor of the folder, from when it was made or judged. If another folder lies under
// the path by now, nothing is removed. -1: there is none.
void remove_folder(const std::string& path, int made = -1);

}  // namespace ddprun
