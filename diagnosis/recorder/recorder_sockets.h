// Asks the servers that PyTorch has opened in the workers (warm/bootstrap/_ddprun_recorder.py) what
// their flight recorders have. They answer whatever the program does, also while it holds Python's
// lock.
//
// Protocol: HTTP on a Unix socket, "POST /handler/NAME"; torch/csrc/distributed/c10d/control_plane
// of PyTorch. The sockets lie in a folder that only this user can enter, and their paths may be
// longer than the 107 bytes of an address, so both sides go through /proc/self/fd.
//
// Thread: one of its own. It takes as long as the slowest answer: a stopped worker never answers.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

struct RecorderQuestion {
    std::string socket;   // its name in the folder
    std::string handler;  // "fr_trace_json"
};

// The answers in the same order, empty where there is none: no such socket or handler, too late, or
// more than `longest` bytes. All are asked at once.
std::vector<std::string> ask_recorders(const std::string& folder,
                                       const std::vector<RecorderQuestion>& questions,
                                       Duration patience, std::size_t longest);

}  // namespace ddprun::agent
