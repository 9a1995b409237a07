// Asks PyTorch's recorder of NCCL for its dump: a byte in the pipe that it has made for this.
//
// A thread of ProcessGroupNCCL makes the pipe "PREFIX RANK .pipe" (without spaces), looks into it
// once a second, and then writes the dump "PREFIX RANK" while the training goes on. The prefixes
// are in TORCH_NCCL_DEBUG_INFO_PIPE_FILE and TORCH_NCCL_DEBUG_INFO_TEMP_FILE. The key
// "exception_dump" in its store asks for a dump, too, but ends the workers after it; so it is not
// used.
//
// Source: ProcessGroupNCCL.hpp of PyTorch 2.15 (DumpPipe) and the comments there; not tried on a
// GPU. The "nccl" of PyTorch 2.15 is another one (nccl2), which has no pipe, unless
// TORCH_DIST_USE_NCCL2=0.
//
// Thread: one of its own.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

// Whether somebody reads this pipe, who will write a dump now.
bool ask_by_pipe(const std::string& pipe);

// Waits until all these files have changed since `since` and are no longer being written, or for
// `patience`.
struct AwaitedDump {
    std::string path;
    std::int64_t since = 0;  // when it was last changed before, see changed_at()
};
std::int64_t changed_at(const std::string& path);  // 0: there is none
void await_dumps(std::vector<AwaitedDump> dumps, Duration patience);

}  // namespace ddprun::agent
