// Whose job it is, for a person who may not ask it: another user's folder or socket is never read,
// since that user could have written anything there.
//
// Thread: user_name() blocks as long as the name service does, 5 s at most.
#pragma once

#include <sys/types.h>

#include <string>

#include "operator/ddpctl/ctl_call.h"

namespace ddprun::launcher {

// "alice"; "#1001", as sudo takes it, if the user has no name here.
std::string user_name(uid_t user);
// The user who owns the file or folder, if it is another one than ours; empty: it is ours, or is
// not there.
std::string other_owner(const std::string& path);

// "alices is alice's: `sudo -u alice ddpctl status --ledger=.ddprun/alices`". `what` names the job
// or its folder. The advice repeats the words of the call.
std::string whose_sentence(const std::string& what, const std::string& owner, const CtlCall& call);

}  // namespace ddprun::launcher
