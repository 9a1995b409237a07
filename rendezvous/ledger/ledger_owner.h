// Whose folders and files of a ledger count: only those of our own user. A member of the group who
// could plant an entry could end the job, or let two generations train.
//
// Thread: each call blocks as long as the file system does, so only the FileThread may call.
// Possible errors: refused (it belongs to somebody else, or others may write in it), unavailable.
#pragma once

#include <string>

#include "base/error.h"

namespace ddprun::rendezvous {

// Checks an open file or folder; its name may mean another one by now. `folder` is a descriptor of
// the folder, `what` names the file in the sentence: "ledger folder /home/u/.ddprun/7.0".
Result<> check_owner(int folder, int file, const std::string& what);

// Checks a link in place of a folder: where others may write, theirs could lead to any folder of
// ours, such as the ledger of another job. What is no link passes.
Result<> check_link(const std::string& folder);

// Makes the folder and its parents where they are missing, all with mode 0700. If our own folder
// exists and others may write in it, their permission is taken away.
Result<> make_folder(const std::string& folder);

}  // namespace ddprun::rendezvous
