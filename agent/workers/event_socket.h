// The socket on which one worker gets its events. A socket and not a pipe: writing to it neither
// waits nor raises SIGPIPE, whatever the worker does with its end, and it takes nothing of what the
// user may have of pipes (fs.pipe-user-pages-soft). What lies in it unread is bounded by the kernel
// (net.core.wmem_default).
//
// Thread: the loop's. Owner: the worker set, one object for each worker and generation.
#pragma once

#include <string_view>

#include "agent/workers/event_lines.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class EventSocket {
  public:
    // Returns the worker's end, or none if no descriptors are left. Close it (destroy it) after
    // Keeper::spawn().
    UniqueFd open();
    // Never waits: a line that has no room is dropped.
    void push(std::string_view line);
    // The worker has ended. A process that it left behind reads the end.
    void close() { ours_.reset(); }

  private:
    UniqueFd ours_;
    EventLines lines_;
};

}  // namespace ddprun::agent
